SELECT percentile_cont((SELECT 0.5 FROM users LIMIT 1)) WITHIN GROUP (ORDER BY spent) FROM transactions
