SELECT count(*), regclass 'public.users' FROM users
