SELECT random(), q.m FROM d0.t, LATERAL (SELECT max(y) AS m FROM d0.u WHERE u.id = t.id) AS q WHERE random() < 0.5
