-- set search_path = "$user", "public"
SELECT count(*) FROM users
