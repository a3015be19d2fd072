-- Visitor 50 has 40 rows, and every other visitor has one.
CREATE TABLE visitors AS SELECT g AS id FROM generate_series(1, 50) g;
ALTER TABLE visitors ADD PRIMARY KEY (id);
CREATE TABLE visits AS SELECT least(g, 50) AS id, 10.0::float8 AS cost FROM generate_series(1, 89) g;
ALTER TABLE visits ADD FOREIGN KEY (id) REFERENCES visitors;
