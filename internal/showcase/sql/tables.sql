-- The two protected tables, in the first schema of the search path.
create table users (
  id int primary key,
  income double precision,
  income_class text
);
create table transactions (
  id int primary key,
  user_id int references users (id),
  store_id int,
  other_id int,
  spent double precision
);
