SELECT count(*) FROM (SELECT name, current_user AS me FROM users) u WHERE u.name = u.me
