WITH a AS (WITH i AS (SELECT x FROM d0.t WHERE x > 0) SELECT sum(x) AS s FROM i) SELECT s + laplace(1) FROM a
