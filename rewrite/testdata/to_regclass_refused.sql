SELECT to_regclass('users') FROM users
