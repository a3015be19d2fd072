SELECT q.a + random() AS a, q.b + random() AS b FROM (SELECT rate AS a, rate AS b FROM d0.u WHERE x > 3) AS q ORDER BY 1
