SELECT 'a', sum(x) + laplace(1) FROM d0.t UNION ALL SELECT 'b', sum(y) + laplace(1) FROM d0.u
