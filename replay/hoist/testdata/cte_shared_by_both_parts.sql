WITH a AS (SELECT u, sum(x) AS s FROM d0.t GROUP BY u), b AS (SELECT sum(s) AS s FROM a), c AS (SELECT u, s + random() AS n FROM a) SELECT c.n - b.s FROM c, b
