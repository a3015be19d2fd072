SELECT regclass('users') FROM users
