-- param 25 Users
SELECT anon_count($1, 1.0) FROM transactions
