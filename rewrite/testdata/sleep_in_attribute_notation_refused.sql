SELECT (0.1::float8).pg_sleep, count(*) FROM users
