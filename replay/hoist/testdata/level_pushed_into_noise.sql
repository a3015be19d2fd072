SELECT n FROM (SELECT u.rate, t.x + laplace(1) AS n FROM d0.t JOIN d0.u ON u.id = t.uid WHERE t.x > 3) AS q WHERE random() < q.rate
