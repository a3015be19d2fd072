SELECT count(*) >= 0 FROM users TABLESAMPLE bernoulli ((SELECT 100 FROM stores LIMIT 1)) REPEATABLE (7)
