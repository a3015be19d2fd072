SELECT upper(g) AS h, count(*) + laplace(1) FROM d0.t GROUP BY h
