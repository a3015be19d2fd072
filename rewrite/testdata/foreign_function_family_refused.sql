SELECT * FROM postgres_fdw_get_connections(), users
