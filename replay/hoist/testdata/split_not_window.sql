SELECT g, row_number() OVER (ORDER BY count(*)) + laplace(1) FROM d0.t GROUP BY g
