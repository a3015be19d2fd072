SELECT t.uid + random() AS n FROM d0.t WHERE x > 3 ORDER BY uid + random()
