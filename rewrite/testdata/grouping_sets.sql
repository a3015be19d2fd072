SELECT store_id, GROUPING(store_id), sum(spent) FROM transactions GROUP BY GROUPING SETS ((store_id), ROLLUP (user_id, (SELECT 1 FROM users LIMIT 1)), ())
