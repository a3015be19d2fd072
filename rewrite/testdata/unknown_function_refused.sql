SELECT leaky(income) FROM users
