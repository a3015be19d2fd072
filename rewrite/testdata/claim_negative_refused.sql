SELECT anon_count(id, -0.5) FROM users
