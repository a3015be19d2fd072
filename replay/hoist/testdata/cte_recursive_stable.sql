WITH RECURSIVE r(n, p) AS (SELECT id, parent FROM d0.t WHERE parent IS NULL UNION ALL SELECT t.id, t.parent FROM d0.t JOIN r ON t.parent = r.n) SELECT n, laplace(1) FROM r
