WITH RECURSIVE a AS (SELECT s FROM b WHERE s > 0), b AS (SELECT sum(x) AS s FROM d0.t) SELECT s + laplace(1) FROM a
