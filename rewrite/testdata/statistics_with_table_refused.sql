SELECT count(*) FROM users, pg_stats
