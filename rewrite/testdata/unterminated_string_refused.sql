SELECT count(*) FROM users WHERE name = 'secret
