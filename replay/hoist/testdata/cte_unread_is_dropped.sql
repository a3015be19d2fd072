WITH a AS (SELECT max(x) AS m FROM d0.t), b AS (SELECT sum(x) AS s FROM d0.t), c AS (SELECT random() AS r) SELECT s + laplace(1) FROM b
