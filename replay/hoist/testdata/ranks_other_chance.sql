WITH s (g, u) AS (SELECT b, md5(c) FROM d0.t GROUP BY 1, 2),
a (x, g, u) AS (SELECT laplace(1), g, u FROM s),
j (x, g, u, rx, rg, ru) AS (SELECT * FROM a AS l JOIN a AS r ON l.x <= r.x AND l.u = r.u),
p (v, h, w) AS (SELECT x, g, u FROM j),
c (n, h, w) AS (SELECT count(v), h, w FROM p GROUP BY h, w)
SELECT * FROM c
