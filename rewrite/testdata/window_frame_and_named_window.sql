SELECT id, sum(income) OVER w, rank() OVER (w) FROM users WINDOW w AS (PARTITION BY kind ORDER BY id) ORDER BY id
