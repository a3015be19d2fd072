WITH q AS (SELECT t.x, u.rate FROM d0.t JOIN d0.u ON u.id = t.uid), s AS (SELECT sum(x) AS s FROM q) SELECT count(*), (SELECT s FROM s) FROM q, d0.u WHERE random() < q.rate
