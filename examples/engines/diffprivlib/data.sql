-- 200 persons. Person 200 has spent the most, has no income (NaN, as data frames write it) and the largest of four scores.
CREATE TABLE people AS SELECT g AS id, (20 + g % 60)::float8 AS age,
  CASE WHEN g = 200 THEN 'NaN'::float8 ELSE 1000 + 10 * g END::float8 AS income,
  CASE WHEN g > 196 THEN (g - 196) * 25 ELSE 'NaN'::float8 END::float8 AS score,
  CASE WHEN g = 200 THEN 100 ELSE g % 2 END::float8 AS spent
FROM generate_series(1, 200) g;
ALTER TABLE people ADD PRIMARY KEY (id);
