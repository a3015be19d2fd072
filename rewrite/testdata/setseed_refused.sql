SELECT setseed(0.5), random() FROM users
