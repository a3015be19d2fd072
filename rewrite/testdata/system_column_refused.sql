SELECT count(DISTINCT tableoid) FROM transactions
