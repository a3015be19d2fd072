WITH j (a, b, c, d) AS (SELECT * FROM d0.t AS l JOIN d0.t AS r ON l.id = r.id) SELECT a, d + laplace(1) FROM j
