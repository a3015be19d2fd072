-- 200 persons. Person 200 is 120 years old.
CREATE TABLE people AS SELECT g AS id, CASE WHEN g = 200 THEN 120 ELSE 20 + g % 60 END AS age FROM generate_series(1, 200) g;
ALTER TABLE people ADD PRIMARY KEY (id);
