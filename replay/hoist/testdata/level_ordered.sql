SELECT count(*) FROM (SELECT t.x, u.rate FROM d0.t JOIN d0.u ON u.id = t.uid ORDER BY 1) AS q WHERE random() < q.rate
