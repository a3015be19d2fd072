-- set search_path = "$user", public
-- user ref
SELECT count(*) FROM users, transactions
