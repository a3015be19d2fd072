SELECT g, anon_sum(x, 0.5) FROM d0.t GROUP BY g
