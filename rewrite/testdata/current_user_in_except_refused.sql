SELECT current_user::text FROM users EXCEPT SELECT name FROM users
