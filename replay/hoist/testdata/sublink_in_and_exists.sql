SELECT x + random() FROM (SELECT x, random() AS r FROM d0.t) AS v WHERE x IN (SELECT y FROM d0.u WHERE y > 0) AND EXISTS (SELECT 1 FROM d0.u WHERE y < 0)
