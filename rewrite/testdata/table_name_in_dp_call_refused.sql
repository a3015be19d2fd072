SELECT anon_count('public.users', 1.0) FROM transactions
