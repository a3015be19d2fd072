-- param 23 7
SELECT count(*) FROM users WHERE id = $2
