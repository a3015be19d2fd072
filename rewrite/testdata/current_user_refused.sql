SELECT count(*) FROM users WHERE owner = CURRENT_USER
