WITH v (class) AS (SELECT * FROM (VALUES ('low'), ('middle'), ('high')) AS v (class)),
n (class, n) AS (SELECT income_class, count(*) FROM users GROUP BY income_class)
SELECT v.class, coalesce(n.n, 0) + sqrt(-2 * ln(1 - random())) * cos(6.283185307179586 * random()) AS n FROM v LEFT JOIN n ON n.class = v.class
