WITH a AS (SELECT * FROM users), users AS (SELECT 1 AS n) SELECT * FROM a, users
