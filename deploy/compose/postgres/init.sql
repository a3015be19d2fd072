-- The example's databases, for psql as a superuser: shop is production, shadow holds the copies, ledger is dpwatch's own.
-- The passwords are psql variables; what is not set is read from the secrets of the container.
\set ON_ERROR_STOP on
\if :{?app_password} \else \set app_password `cat /run/secrets/app_password`
\endif
\if :{?replay_password} \else \set replay_password `cat /run/secrets/replay_password`
\endif
\if :{?ledger_password} \else \set ledger_password `cat /run/secrets/ledger_password`
\endif

CREATE ROLE app LOGIN PASSWORD :'app_password';
CREATE ROLE dpwatch_replay LOGIN PASSWORD :'replay_password';
ALTER ROLE dpwatch_replay SET default_transaction_read_only = on;
CREATE ROLE dpwatch_ledger LOGIN PASSWORD :'ledger_password';
CREATE DATABASE shop;
CREATE DATABASE shadow;
CREATE DATABASE ledger OWNER dpwatch_ledger;
REVOKE CONNECT, TEMPORARY ON DATABASE shop, shadow, ledger FROM PUBLIC;
GRANT CONNECT ON DATABASE shop TO app;
GRANT CONNECT, TEMPORARY ON DATABASE shadow TO dpwatch_replay;

\connect shop
\ir parts/engine.sql
\ir parts/data.sql
GRANT SELECT ON users, visits TO app;

\connect shadow
\ir parts/engine.sql
CREATE SCHEMA d0;
CREATE SCHEMA d1;
SET search_path = d0, public;
\ir parts/data.sql
SET search_path = d1, public;
\ir parts/data.sql
-- The neighbour lacks one user. With data of your own: dpwatch neighbours create.
DELETE FROM visits WHERE user_id = 1;
DELETE FROM users WHERE id = 1;
VACUUM ANALYZE;
GRANT USAGE ON SCHEMA d0, d1 TO dpwatch_replay;
GRANT SELECT ON ALL TABLES IN SCHEMA d0, d1 TO dpwatch_replay;
