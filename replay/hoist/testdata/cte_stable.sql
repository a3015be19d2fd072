WITH a AS (SELECT sum(x) AS s FROM d0.t) SELECT s + laplace(1) FROM a
