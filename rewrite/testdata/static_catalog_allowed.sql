SELECT count(*) FROM transactions, pg_timezone_names z, pg_catalog.pg_am
