SELECT shop.util.bucket(income) FROM users
