SELECT g, count(*) + laplace(1) AS n, avg(x) FROM d0.t WHERE x > 0 GROUP BY g ORDER BY g, n DESC
