SELECT total + laplace(1) FROM (SELECT sum(x) FROM d0.t) AS q(total)
