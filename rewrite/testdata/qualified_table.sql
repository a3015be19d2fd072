SELECT count(*) FROM public.transactions
