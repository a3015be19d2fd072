SELECT laplace(1), (SELECT 1 + max(y) FROM d0.u) FROM d0.t WHERE x > 0
