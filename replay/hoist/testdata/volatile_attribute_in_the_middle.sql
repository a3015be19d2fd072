WITH a AS (SELECT (t).random.x AS s, count(*) FROM d0.t GROUP BY 1) SELECT s, random() FROM a
