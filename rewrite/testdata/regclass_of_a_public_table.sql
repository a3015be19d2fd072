SELECT 'ref.users'::regclass, ' "pg_catalog" . pg_class'::regclass::oid, regclass 'pg_type', count(*) FROM users
