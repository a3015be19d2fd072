SELECT count(*) FROM ONLY (users), ONLY public.transactions
