-- set dp.epsilon = 0.5
SELECT anon_count(id, current_setting('dp.epsilon')::float8) FROM users
