-- name: sum with a range
-- expect: no evidence
SELECT SUM(age) AS total FROM people;

-- name: mean with a range
-- expect: no evidence
SELECT AVG(age) AS mean FROM people;

-- name: counts of public groups
-- expect: no evidence
SELECT city, COUNT(*) AS n FROM people GROUP BY city;
