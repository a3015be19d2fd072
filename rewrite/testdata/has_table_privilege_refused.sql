SELECT has_table_privilege('users', 'SELECT'), count(*) FROM users
