SELECT 'ü' FROM users WHERE = 'secret'
