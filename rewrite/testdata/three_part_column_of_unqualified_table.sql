SELECT sum(public.transactions.spent) FROM transactions GROUP BY public.transactions.store_id
