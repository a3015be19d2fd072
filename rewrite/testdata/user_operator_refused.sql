SELECT income OPERATOR(private.+) 1 FROM users
