SELECT count(*) FROM users WHERE kind = 'users'
