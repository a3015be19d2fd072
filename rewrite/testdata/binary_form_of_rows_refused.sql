SELECT md5(array_send(array_agg(u))::text) FROM users u
