WITH a AS (SELECT mystery(x) AS s FROM d0.t) SELECT s FROM a
