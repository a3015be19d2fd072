SELECT count(*) FROM backup.users
