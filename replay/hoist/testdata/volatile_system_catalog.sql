WITH a AS (SELECT count(*) AS s FROM pg_class) SELECT s + laplace(1) FROM a
