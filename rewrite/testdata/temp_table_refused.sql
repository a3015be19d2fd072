SELECT count(*) FROM users, pg_temp.scratch
