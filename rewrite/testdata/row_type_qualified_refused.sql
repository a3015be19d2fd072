SELECT NULL::public.users, count(*) FROM users
