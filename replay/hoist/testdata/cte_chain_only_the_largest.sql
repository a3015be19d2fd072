WITH a AS (SELECT x, md5(u) AS u FROM d0.t), b AS (SELECT u, sum(x) AS s FROM a GROUP BY u), c AS (SELECT sum(s) AS s FROM b) SELECT s + laplace(1) FROM c
