SELECT (SELECT sum(x) FROM d0.t) + laplace(1)
