SELECT CASE WHEN count(*) > 0 THEN sum(x) / count(*) + laplace(1) ELSE 0 END AS mean FROM d0.t
