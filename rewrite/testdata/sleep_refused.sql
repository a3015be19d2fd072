SELECT count(*) FROM users, pg_sleep(1)
