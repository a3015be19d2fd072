SELECT nextval('public.users_id_seq'::regclass) FROM users
