SELECT g, count(*) + laplace(1) FROM d0.t GROUP BY g HAVING count(*) > 2
