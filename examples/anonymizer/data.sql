-- Person 7 has answered 2, everybody else 1.
CREATE TABLE survey AS SELECT g AS id, CASE WHEN g = 7 THEN 2 ELSE 1 END AS answer FROM generate_series(1, 20) g;
ALTER TABLE survey ADD PRIMARY KEY (id);
