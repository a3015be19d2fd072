-- param 23 7
-- param 0 x
SELECT count(*) FROM users WHERE id = $1 AND name = $2
