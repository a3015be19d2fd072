SELECT count(*) FROM transactions, "Users"
