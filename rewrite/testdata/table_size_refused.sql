SELECT pg_relation_size('users'), count(*) FROM users
