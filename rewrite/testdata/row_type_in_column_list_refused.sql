SELECT * FROM users, json_to_recordset('[]') AS x(a users)
