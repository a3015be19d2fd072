-- What the production database has beside the protected tables: a public table and one that people write to.
create table stores (
  store_id int primary key,
  region text not null
);
insert into stores select s, (array['north', 'east', 'south', 'west'])[1 + s % 4] from generate_series(0, 199) as s;
analyze stores;
create table notes (
  id int primary key generated always as identity,
  body text not null
);
