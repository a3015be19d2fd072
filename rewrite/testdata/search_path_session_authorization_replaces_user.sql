-- set session_authorization = ref
-- set role = none
-- set search_path = "$user", public
SELECT count(*) FROM users, transactions
