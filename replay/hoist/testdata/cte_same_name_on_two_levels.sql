WITH a AS (SELECT x FROM d0.t WHERE x > 0) SELECT * FROM (WITH a AS (SELECT sum(x) AS x FROM a) SELECT x + random() AS s FROM a) AS q
