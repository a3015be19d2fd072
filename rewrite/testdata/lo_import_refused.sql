SELECT lo_import('/etc/passwd') FROM users
