SELECT u.record_send FROM users u
