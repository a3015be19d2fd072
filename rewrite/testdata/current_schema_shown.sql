SELECT current_schema, count(*) FROM users
