SELECT public.users.id, u.id FROM users, users u WHERE public.users.id = u.id
