SELECT count(*) FROM transactions TABLESAMPLE system_rows(10)
