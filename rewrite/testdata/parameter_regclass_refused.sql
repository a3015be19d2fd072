-- param 2205 users
SELECT count(*) FROM users WHERE id = $1::oid::int
