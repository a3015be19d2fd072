SELECT NULL::public.users FROM users
