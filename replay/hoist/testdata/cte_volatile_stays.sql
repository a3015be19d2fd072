WITH a AS (SELECT x, random() AS r FROM d0.t), b AS (SELECT sum(x) AS s FROM a WHERE r < 0.5) SELECT s FROM b
