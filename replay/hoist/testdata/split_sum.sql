SELECT sum(x) + laplace(1 / 0.5) FROM d0.t
