WITH transactions AS (SELECT * FROM transactions WHERE spent < 10) SELECT sum(spent) FROM transactions
