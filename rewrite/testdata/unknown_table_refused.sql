SELECT count(*) FROM users JOIN logins USING (id)
