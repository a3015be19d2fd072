SELECT u.id FROM users u JOIN stores s ON s.id = u.id FOR UPDATE OF u
