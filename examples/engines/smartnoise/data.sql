-- 200 persons. Person 200 is 120 years old, has no income, and is the only one whose balance is not overdrawn; 60 others
-- have a bonus like his, above the bound of 100 that is declared.
CREATE TABLE people AS SELECT g AS id, CASE WHEN g % 3 = 0 THEN 'Rome' ELSE 'Paris' END AS city,
  CASE WHEN g = 200 THEN 120 ELSE 20 + g % 60 END AS age, CASE WHEN g >= 140 THEN 1000 ELSE 50 END AS bonus,
  CASE WHEN g = 200 THEN 100 ELSE -100 END AS balance, CASE WHEN g = 200 THEN 0 ELSE 1000 + g END::float8 AS income
FROM generate_series(1, 200) g;
ALTER TABLE people ADD PRIMARY KEY (id);
