SELECT q.s + laplace(1) FROM (SELECT sum(x) AS s FROM d0.t) AS q
