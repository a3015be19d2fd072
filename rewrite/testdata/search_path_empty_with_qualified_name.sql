-- set search_path = ""
SELECT count(*) FROM public.users
