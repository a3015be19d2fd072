SELECT count(*) FROM d0.t WHERE random() < 0.5 AND id IN (SELECT id FROM d0.u WHERE x > 3)
