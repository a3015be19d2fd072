-- set client_encoding = LATIN1
SELECT count(*) FROM users
