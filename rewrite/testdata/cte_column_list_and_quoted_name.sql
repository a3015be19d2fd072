WITH "Users" (n) AS (SELECT count(*) FROM users) SELECT n FROM "Users"
