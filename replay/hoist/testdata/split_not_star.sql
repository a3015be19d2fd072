SELECT *, laplace(1) FROM d0.t WHERE x > 0
