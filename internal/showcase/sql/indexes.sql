-- After loading, as production would have them.
create index on transactions (user_id);
create index on transactions (store_id, user_id);
create index on users (income_class);
