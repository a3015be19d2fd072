-- Rights in the shadow database. Run as a superuser, in that database; psql takes it as it is:
--   psql -d shadow -v database=shadow -v replay_password=... -f roles_shadow.sql
-- dpwatch_replay reads the public table, calls the functions in schema public, and can do nothing else: no other
-- database, no writing but to temporary tables, which hoisting makes. The right to read the neighbours comes with them.
do $$ begin create role dpwatch_replay; exception when duplicate_object then null; end $$;
alter role dpwatch_replay login password :'replay_password';
alter role dpwatch_replay set default_transaction_read_only = on;
revoke create on schema public from public;
revoke connect, temporary on database :"database" from public;
grant connect, temporary on database :"database" to dpwatch_replay;
grant usage on schema public to dpwatch_replay;
grant select on stores to dpwatch_replay;
