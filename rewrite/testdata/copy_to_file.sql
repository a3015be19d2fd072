COPY (SELECT * FROM users) TO '/tmp/x'
