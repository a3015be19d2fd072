WITH transactions AS (SELECT 1 AS spent) SELECT sum(spent) FROM transactions, users
