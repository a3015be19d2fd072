WITH users AS (SELECT 1) SELECT * FROM (WITH transactions AS (SELECT * FROM users) SELECT * FROM transactions) s, transactions
