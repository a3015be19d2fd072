-- 200 persons in three cities. Person 200 is the only one in Oslo, and 120 years old.
CREATE TABLE people AS SELECT g AS id, CASE WHEN g = 200 THEN 120 ELSE 20 + g % 60 END AS age,
  CASE WHEN g = 200 THEN 'Oslo' WHEN g % 3 = 0 THEN 'Rome' ELSE 'Paris' END AS city
FROM generate_series(1, 200) g;
ALTER TABLE people ADD PRIMARY KEY (id);
