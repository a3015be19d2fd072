-- set search_path = tenant7, public
SELECT count(*) FROM users
