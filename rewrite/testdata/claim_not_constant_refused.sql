SELECT anon_count(id, income) FROM users
