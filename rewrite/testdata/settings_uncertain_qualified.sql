-- uncertain
SELECT count(*) FROM public.users
