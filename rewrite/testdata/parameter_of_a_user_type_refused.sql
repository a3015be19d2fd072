-- param 16401 red
SELECT count(*) FROM users WHERE colour = $1
