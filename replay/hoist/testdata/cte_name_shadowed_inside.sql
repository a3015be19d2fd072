WITH a AS (SELECT x FROM d0.t WHERE x > 0), b AS (WITH a AS (SELECT x + 1 AS x FROM a) SELECT sum(x) AS s FROM a) SELECT s + laplace(1) FROM b
