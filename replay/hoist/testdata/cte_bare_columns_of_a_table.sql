WITH a AS (SELECT id, x FROM d0.t) SELECT x + laplace(1) FROM a
