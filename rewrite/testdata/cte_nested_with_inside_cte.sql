WITH a AS (WITH users AS (SELECT 2 AS id) SELECT * FROM users), b AS (SELECT * FROM users) SELECT * FROM a, b
