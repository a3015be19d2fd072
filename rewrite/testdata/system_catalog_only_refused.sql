SELECT relname FROM pg_class JOIN pg_catalog.pg_namespace n ON n.oid = relnamespace
