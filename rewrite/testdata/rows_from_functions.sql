SELECT * FROM ROWS FROM (generate_series(1, (SELECT count(*) FROM users)), unnest(ARRAY[1, 2])) WITH ORDINALITY AS f(a, b, n), transactions
