WITH a AS (SELECT g, sum(x) AS s FROM d0.t GROUP BY g) SELECT a, (a).s + laplace(1) FROM a
