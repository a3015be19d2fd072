SELECT count(*) FROM (SELECT max(t.x) AS x, u.rate FROM d0.t JOIN d0.u ON u.id = t.uid GROUP BY u.rate) AS q WHERE random() < q.rate
