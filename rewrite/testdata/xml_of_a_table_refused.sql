SELECT table_to_xml('users', true, false, ''), count(*) FROM users
