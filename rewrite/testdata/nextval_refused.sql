SELECT nextval('s'), count(*) FROM users
