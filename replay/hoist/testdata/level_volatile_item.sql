SELECT q.x, n FROM (SELECT max(x) AS x FROM d0.t GROUP BY y) AS q, LATERAL (SELECT random() * q.x AS n) AS r
