SELECT count(*) FROM transactions
