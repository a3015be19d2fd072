WITH transactions AS (SELECT 1) SELECT count(*) FROM public.transactions, transactions
