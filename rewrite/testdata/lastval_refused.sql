SELECT lastval(), count(*) FROM users
