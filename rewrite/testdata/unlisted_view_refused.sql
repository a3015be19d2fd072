SELECT count(*) FROM users, user_view
