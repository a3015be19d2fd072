SELECT g, count(*) + laplace(1) FROM d0.t GROUP BY g ORDER BY sum(x) DESC LIMIT 3
