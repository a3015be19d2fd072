SELECT count(*), database_to_xml(true, false, '') FROM users
