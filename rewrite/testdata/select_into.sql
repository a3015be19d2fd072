SELECT * INTO copy FROM users
