SELECT count(*) FROM shop.public.transactions
