SELECT pg_notify('x', 'y') FROM users
