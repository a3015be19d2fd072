-- uncertain
WITH c AS (SELECT * FROM public.users) SELECT count(*) FROM c
