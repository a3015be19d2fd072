-- set search_path = "public
SELECT count(*) FROM users
