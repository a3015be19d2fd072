WITH a AS (DELETE FROM d0.t RETURNING x) SELECT sum(x) + laplace(1) FROM a
