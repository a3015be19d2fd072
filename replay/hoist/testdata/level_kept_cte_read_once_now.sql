WITH q AS (SELECT * FROM d0.t), s AS (SELECT sum(x) AS s FROM q) SELECT count(*) + (SELECT s FROM s) FROM q WHERE random() < 0.5
