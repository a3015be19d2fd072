WITH users AS (SELECT 1 AS n), a AS (SELECT * FROM users) SELECT * FROM a, transactions
