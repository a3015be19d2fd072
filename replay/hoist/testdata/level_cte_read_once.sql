WITH q AS (SELECT t.x, u.rate FROM d0.t JOIN d0.u ON u.id = t.uid) SELECT count(*) + laplace(10) FROM q WHERE random() < q.rate
