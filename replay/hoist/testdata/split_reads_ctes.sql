WITH a AS (SELECT u, sum(x) AS s FROM d0.t GROUP BY u) SELECT sum(s) + laplace(1) FROM a
