SELECT count(*) FROM users WHERE id = ?
