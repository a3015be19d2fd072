-- 200 persons. Person 200 is the only one in Oslo, is the oldest, has no income (NaN, as data frames write it), and has the longest vector (x, y).
CREATE TABLE people AS SELECT g AS id, CASE WHEN g = 200 THEN 100 ELSE 20 + g % 60 END::float8 AS age,
  CASE WHEN g = 200 THEN 'Oslo' WHEN g % 3 = 0 THEN 'Rome' ELSE 'Paris' END AS city,
  CASE WHEN g = 200 THEN 'NaN'::float8 ELSE 1000 + 10 * g END AS income,
  CASE WHEN g = 200 THEN 500 ELSE 1 END::float8 AS x, CASE WHEN g = 200 THEN 500 ELSE g % 2 END::float8 AS y
FROM generate_series(1, 200) g;
ALTER TABLE people ADD PRIMARY KEY (id);
