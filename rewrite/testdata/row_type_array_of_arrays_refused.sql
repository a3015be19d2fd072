SELECT NULL::__users, id FROM users
