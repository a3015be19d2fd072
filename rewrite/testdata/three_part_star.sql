SELECT public.users.* FROM public.users
