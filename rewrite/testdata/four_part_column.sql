SELECT shop.public.users.income, shop.public.users.* FROM users
