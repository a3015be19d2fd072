-- 200 persons, each of whom was in two places. Person 200 is 120 years old, has no income, and was alone in 500 places.
CREATE TABLE people AS SELECT g AS id, CASE WHEN g % 3 = 0 THEN 'Rome' ELSE 'Paris' END AS city,
  CASE WHEN g = 200 THEN 120 ELSE 20 + g % 60 END AS age, CASE WHEN g = 200 THEN 0 ELSE 1000 + g END::float8 AS income
FROM generate_series(1, 200) g;
ALTER TABLE people ADD PRIMARY KEY (id);
CREATE TABLE visits AS SELECT g AS id, 'place ' || p AS place FROM generate_series(1, 200) g, generate_series(1, 2) p
  UNION ALL SELECT 200, 'corner ' || p FROM generate_series(1, 500) p;
ALTER TABLE visits ADD FOREIGN KEY (id) REFERENCES people;
