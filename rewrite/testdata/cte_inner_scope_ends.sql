SELECT (WITH users AS (SELECT 1 AS n) SELECT n FROM users), count(*) FROM users
