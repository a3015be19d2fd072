SELECT (ARRAY(SELECT id FROM users))[(SELECT 1 FROM users LIMIT 1)], (ARRAY[1])[1] FROM transactions
