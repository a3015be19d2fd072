SELECT public.users.tags[1], (public.users.addr).city FROM users
