CREATE TABLE patients AS SELECT g AS id, 20 + g % 60 AS age, CASE WHEN g = 40 THEN 'rare' ELSE 'common' END AS diagnosis FROM generate_series(1, 40) g;
ALTER TABLE patients ADD PRIMARY KEY (id);
