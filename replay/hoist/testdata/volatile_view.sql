WITH a AS (SELECT sum(x) AS s FROM d0.noisy_view) SELECT s FROM a
