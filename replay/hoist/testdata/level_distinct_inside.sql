SELECT count(*) FROM (SELECT DISTINCT t.x, u.rate FROM d0.t JOIN d0.u ON u.id = t.uid) AS q WHERE random() < q.rate
