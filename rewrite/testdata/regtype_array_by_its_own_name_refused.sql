SELECT '{users}'::pg_catalog._regtype, id FROM users
