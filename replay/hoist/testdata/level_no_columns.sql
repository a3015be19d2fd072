SELECT count(*) FROM (SELECT t.x, u.rate FROM d0.t JOIN d0.u ON u.id = t.uid) AS q JOIN (SELECT max(x) AS x FROM d0.t) AS r ON true WHERE random() < 0.5
