WITH t AS MATERIALIZED (SELECT * FROM users) SELECT (SELECT count(*) FROM t), (WITH t AS (SELECT * FROM transactions) SELECT count(*) FROM t), (SELECT count(*) FROM public.users) FROM t LIMIT 1
