SELECT query_to_xml('select * from users', true, true, '') FROM users
