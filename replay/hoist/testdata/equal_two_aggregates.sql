SELECT g, sum(a) + random() AS a, sum(b) + random() AS b FROM (SELECT g, rate AS a, x AS b FROM d0.u WHERE x > 3) AS q GROUP BY g ORDER BY a
