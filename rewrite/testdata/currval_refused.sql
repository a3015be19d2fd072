SELECT currval('users_id_seq'), count(*) FROM users
