WITH a AS (SELECT g, row_number() OVER (ORDER BY x) AS n, generate_series(1, 2) AS s FROM d0.t) SELECT g, n + random() FROM a
