SELECT laplace(1) + count(*) AS n, upper(g) FROM d0.t GROUP BY 2 ORDER BY 1
