SELECT count(*) FROM (SELECT max(x) AS x FROM d0.t GROUP BY y) AS q, d0.u WHERE random() < u.rate
