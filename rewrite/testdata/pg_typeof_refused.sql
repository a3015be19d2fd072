SELECT pg_typeof(users) FROM users
