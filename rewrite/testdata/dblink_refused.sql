SELECT * FROM users, dblink('host=a', 'select 1') AS t(x int)
