SELECT count(*) FROM (SELECT sqrt(x) AS x, rate FROM d0.seen WHERE x > 3) AS q WHERE random() < q.rate
