SELECT '{}'::_users FROM users
