SELECT (SELECT max(t.spent) FROM transactions t WHERE t.user_id = public.users.id) FROM public.users
