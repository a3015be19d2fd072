-- name: count
-- expect: no evidence
SELECT COUNT(*) AS n FROM people;

-- name: sum with bounds, with the claim of get_privacy_cost
-- expect: no evidence
SELECT SUM(age) AS total FROM people;

-- name: mean, with the claim of get_privacy_cost
-- expect: no evidence
-- pairs: 1000
SELECT AVG(balance) AS mean FROM people;

-- name: counts of groups
-- expect: no evidence
SELECT city, COUNT(*) AS n FROM people GROUP BY city;

-- name: sums of groups, of another column
-- expect: no evidence
SELECT city, SUM(bonus) AS total FROM people GROUP BY city;

-- name: count where a column has no bad value for the function
-- expect: no evidence
SELECT COUNT(*) AS n FROM people WHERE LN(age) > 1;
