SELECT count(*) FROM ONLY users, ONLY (transactions), users * AS u
