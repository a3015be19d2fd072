WITH v(g) AS (SELECT * FROM (VALUES ('F'), ('M')) AS v(g)), a AS (SELECT g, count(*) AS n FROM d0.t GROUP BY g) SELECT v.g, coalesce(n, 0) + laplace(1) FROM v LEFT JOIN a ON a.g = v.g
