VALUES ((SELECT count(*) FROM users)), (1)
