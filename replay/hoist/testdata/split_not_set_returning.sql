SELECT generate_series(1, 2), count(*) + laplace(1) FROM d0.t
