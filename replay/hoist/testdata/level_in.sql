SELECT count(*) FROM d0.t WHERE random() < t.rate AND id IN (SELECT id FROM d0.u WHERE x > 3)
