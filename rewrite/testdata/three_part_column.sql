SELECT public.transactions.spent FROM public.transactions WHERE public.transactions.user_id = 3
