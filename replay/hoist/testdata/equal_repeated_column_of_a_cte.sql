WITH q AS (SELECT u.*, rate AS b FROM d0.u WHERE x > 3) SELECT q.rate + random() AS a, q.b + random() AS b FROM q GROUP BY 1, 2
