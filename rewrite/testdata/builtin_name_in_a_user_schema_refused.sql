SELECT public.count(income) FROM users
