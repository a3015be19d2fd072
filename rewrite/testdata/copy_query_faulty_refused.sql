COPY (SELECT nosuch(id) FROM users) TO STDOUT
