SELECT * FROM logins
