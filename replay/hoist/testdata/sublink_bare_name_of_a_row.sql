SELECT (SELECT max(u) FROM d0.u) + laplace(1)
