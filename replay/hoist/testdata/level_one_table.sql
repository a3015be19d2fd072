SELECT count(*) FROM (SELECT sqrt(x) AS x, rate FROM d0.t WHERE x > 3) AS q WHERE random() < q.rate
