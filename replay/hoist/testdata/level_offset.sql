SELECT count(*) + laplace(10) FROM (SELECT t.x, u.rate FROM d0.t JOIN d0.u ON u.id = t.uid OFFSET 0) AS q WHERE random() < q.rate
