declare "SQL_CUR0x55d7f8" cursor with hold for (WITH users AS (SELECT id FROM users) SELECT count(*) FROM users)
