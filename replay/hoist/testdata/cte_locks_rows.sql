WITH a AS (SELECT x + 1 AS x FROM d0.t FOR UPDATE) SELECT x + laplace(1) FROM a
