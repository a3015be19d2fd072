WITH a AS (SELECT x FROM d0.t WHERE x > 0) SELECT * FROM (WITH b AS (SELECT sum(x) AS s FROM a) SELECT s + random() AS s FROM b) AS q
