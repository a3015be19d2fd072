SELECT count(*) FROM other.public.transactions
