SELECT count(*) FROM (SELECT x FROM d0.t UNION SELECT x FROM d0.u) AS q WHERE random() < 0.5
