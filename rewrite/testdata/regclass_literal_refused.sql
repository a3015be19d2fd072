SELECT count(*), 'users'::regclass FROM users
