-- uncertain
SELECT count(*) FROM users
