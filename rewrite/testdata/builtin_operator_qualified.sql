SELECT income OPERATOR(pg_catalog.+) 1 FROM users ORDER BY 1 USING OPERATOR(pg_catalog.<)
