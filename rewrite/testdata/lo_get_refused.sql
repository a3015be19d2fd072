SELECT lo_get(1), count(*) FROM users
