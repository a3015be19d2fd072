SELECT count(u.ctid), count(xmin) FROM users u WHERE u.ctid IS NOT NULL
