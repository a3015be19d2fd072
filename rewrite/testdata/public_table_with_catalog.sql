SELECT shop.ref.users.id FROM transactions, shop.ref.users
