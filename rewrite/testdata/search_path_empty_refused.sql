-- set search_path = ""
SELECT count(*) FROM users
