WITH RECURSIVE users AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM users WHERE n < 3) SELECT n, t.spent FROM users, transactions t
