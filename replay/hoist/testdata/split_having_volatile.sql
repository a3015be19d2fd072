SELECT g FROM d0.t GROUP BY g HAVING count(*) + laplace(1) > 2
