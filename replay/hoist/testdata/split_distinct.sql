SELECT DISTINCT g, round(laplace(1)) FROM d0.t GROUP BY g
