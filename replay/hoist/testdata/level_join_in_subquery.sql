SELECT count(*) + laplace(10) AS n FROM (SELECT t.x, u.rate FROM d0.t JOIN d0.u ON u.id = t.uid) AS q WHERE random() < q.rate
