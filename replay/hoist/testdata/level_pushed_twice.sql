SELECT count(*) FROM (SELECT x, rate FROM (SELECT t.x, u.rate FROM d0.t JOIN d0.u ON u.id = t.uid) AS p) AS q WHERE random() < q.rate
