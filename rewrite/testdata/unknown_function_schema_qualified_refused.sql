SELECT other.bucket(income) FROM users
