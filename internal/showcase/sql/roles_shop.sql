-- Rights in the production database. Run as a superuser, in that database; psql takes it as it is:
--   psql -d shop -v database=shop -v app_password=... -f roles_shop.sql
-- app is the DP engine's client: it reads, calls the DP functions, and writes notes.
do $$ begin create role app; exception when duplicate_object then null; end $$;
alter role app login password :'app_password';
revoke create on schema public from public;
revoke connect, temporary on database :"database" from public;
grant connect, temporary on database :"database" to app;
grant usage on schema public to app;
grant select on all tables in schema public to app;
grant insert on notes to app;
