WITH s (g, u) AS (SELECT b, md5(c) FROM d0.t GROUP BY 1, 2),
a (x, g, "U") AS (SELECT random(), g, u FROM s),
j (x, g, u, rx, rg, ru) AS (SELECT * FROM a AS l JOIN a AS r ON (l.x <= r.x) AND (r."U" = l."U")),
p (v, h, w) AS (SELECT x AS v, g, u FROM j),
c (n, h, w) AS (SELECT count(v), h, w FROM p GROUP BY h, w),
few (h) AS (SELECT h FROM c WHERE n <= 10)
SELECT h, count(*) + laplace(1) FROM few GROUP BY h
