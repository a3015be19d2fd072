WITH p(eps) AS (VALUES (0.5)) SELECT anon_count(id, ln(abs(-p.eps)) / 2) FROM users, p
