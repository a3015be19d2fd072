SELECT sum(x + laplace(1)) FROM d0.t
