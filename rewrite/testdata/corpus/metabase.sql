-- Metabase: the query builder's and native questions
SELECT COUNT(*) AS "count" FROM "public"."orders"

SELECT "public"."orders"."status" AS "status", COUNT(*) AS "count" FROM "public"."orders" GROUP BY "public"."orders"."status" ORDER BY "public"."orders"."status" ASC

SELECT DATE_TRUNC('month', "public"."orders"."created_at") AS "created_at", SUM("public"."orders"."total") AS "sum" FROM "public"."orders" GROUP BY DATE_TRUNC('month', "public"."orders"."created_at") ORDER BY DATE_TRUNC('month', "public"."orders"."created_at") ASC

SELECT "public"."users"."id" AS "id", "public"."users"."email" AS "email", "public"."users"."name" AS "name", "public"."users"."tier" AS "tier" FROM "public"."users" ORDER BY "public"."users"."id" ASC LIMIT 1048575

SELECT "Users"."country" AS "Users__country", AVG("public"."orders"."total") AS "avg" FROM "public"."orders" LEFT JOIN "public"."users" AS "Users" ON "public"."orders"."user_id" = "Users"."id" GROUP BY "Users"."country" ORDER BY "Users"."country" ASC

SELECT CAST("public"."orders"."created_at" AS date) AS "created_at", COUNT(DISTINCT "public"."orders"."user_id") AS "count" FROM "public"."orders" WHERE ("public"."orders"."status" = 'paid') AND ("public"."orders"."created_at" >= timestamp '2023-03-01 00:00:00.000') GROUP BY CAST("public"."orders"."created_at" AS date) ORDER BY 1

SELECT ((FLOOR((("public"."orders"."total" - 0.0) / 50.0)) * 50.0) + 0.0) AS "total", COUNT(*) AS "count" FROM "public"."orders" GROUP BY ((FLOOR((("public"."orders"."total" - 0.0) / 50.0)) * 50.0) + 0.0) ORDER BY 1 ASC

SELECT "source"."status" AS "status", "source"."sum" AS "sum" FROM (SELECT "public"."orders"."status" AS "status", SUM("public"."orders"."total") AS "sum" FROM "public"."orders" GROUP BY "public"."orders"."status") AS "source" WHERE "source"."sum" > 100 ORDER BY "source"."status" ASC LIMIT 10

SELECT "Products"."category" AS "Products__category", DATE_TRUNC('quarter', CAST("Orders"."created_at" AS timestamp)) AS "q", SUM("public"."order_items"."quantity" * "public"."order_items"."price") AS "revenue" FROM "public"."order_items" INNER JOIN "public"."orders" AS "Orders" ON "public"."order_items"."order_id" = "Orders"."id" LEFT JOIN "public"."products" AS "Products" ON "public"."order_items"."product_id" = "Products"."id" GROUP BY 1, 2 ORDER BY 1, 2

SELECT MIN("public"."users"."email") AS "min", MAX("public"."users"."email") AS "max" FROM "public"."users"

SELECT CAST(EXTRACT(dow FROM "public"."orders"."created_at") AS integer) + 1 AS "created_at", COUNT(*) AS "count" FROM "public"."orders" GROUP BY CAST(EXTRACT(dow FROM "public"."orders"."created_at") AS integer) + 1 ORDER BY 1

SELECT (CAST(date_trunc('week', CAST("public"."orders"."created_at" AS timestamp) + INTERVAL '1 day') AS timestamp) - INTERVAL '1 day') AS "week", SUM(CASE WHEN "public"."orders"."status" = 'refunded' THEN 1 ELSE 0.0 END) AS "refunds" FROM "public"."orders" GROUP BY 1 ORDER BY 1

SELECT COUNT(*) AS "count" FROM "public"."users" WHERE LOWER("public"."users"."name") LIKE '%name 1%'

SELECT COUNT(*) AS "count" FROM "public"."users" WHERE "public"."users"."country" IS NULL OR "public"."users"."country" <> 'DE'

SELECT "public"."users"."tier" AS "tier", COUNT(*) AS "count" FROM "public"."users" WHERE "public"."users"."tier" IN (CAST('pro' AS "tier"), CAST('business' AS "tier")) GROUP BY "public"."users"."tier" ORDER BY 2 DESC, 1 ASC

SELECT (CAST("public"."users"."props"#>>array['plan']::text[] AS text)) AS "props → plan", COUNT(*) AS "count" FROM "public"."users" GROUP BY 1 ORDER BY 1

SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "public"."orders"."total") AS "median", STDDEV_POP("public"."orders"."total") AS "stddev", VAR_POP("public"."orders"."total") AS "var" FROM "public"."orders"

SELECT SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('month', "public"."users"."created_at") ASC ROWS UNBOUNDED PRECEDING) AS "cumulative", DATE_TRUNC('month', "public"."users"."created_at") AS "m" FROM "public"."users" GROUP BY 2 ORDER BY 2

SELECT "source"."month", "source"."n", LAG("source"."n", 1) OVER (ORDER BY "source"."month" ASC) AS "before" FROM (SELECT DATE_TRUNC('month', "public"."orders"."created_at") AS "month", COUNT(*) AS "n" FROM "public"."orders" GROUP BY 1) AS "source" ORDER BY 1

SELECT CASE WHEN "public"."orders"."total" < 50 THEN 'small' WHEN "public"."orders"."total" BETWEEN 50 AND 150 THEN 'medium' ELSE 'large' END AS "size", COUNT(*) AS "count" FROM "public"."orders" GROUP BY 1 ORDER BY 1

SELECT CONCAT("public"."users"."name", ' <', "public"."users"."email", '>') AS "label", LENGTH("public"."users"."name") AS "n" FROM "public"."users" ORDER BY "public"."users"."id" LIMIT 5

SELECT SUBSTRING("public"."users"."email" FROM '@(.*)$') AS "domain", COUNT(*) FROM "public"."users" GROUP BY 1

SELECT COALESCE("public"."users"."country", 'none') AS "country", CAST(COUNT(*) FILTER (WHERE "public"."users"."is_active") AS float) / NULLIF(COUNT(*), 0) AS "rate" FROM "public"."users" GROUP BY 1 ORDER BY 1

SELECT SUBSTRING(REGEXP_REPLACE("public"."users"."referrer", '^https?://', '') FROM '^[^/]+') AS "host", COUNT(*) AS "count" FROM "public"."users" GROUP BY 1 ORDER BY 2 DESC, 1

SELECT COUNT(*) FROM (SELECT DISTINCT "public"."events"."user_id", "public"."events"."name" FROM "public"."events") "x"

SELECT "public"."events"."name", EXTRACT(HOUR FROM TIMEZONE('Europe/Berlin', "public"."events"."at")) AS "hour", COUNT(*) FROM "public"."events" GROUP BY 1, 2 ORDER BY 1, 2

SELECT date_trunc('day', "public"."events"."at" AT TIME ZONE 'UTC') AS "day", COUNT(*) AS "count" FROM "public"."events" WHERE "public"."events"."at" >= DATE_TRUNC('day', (timestamptz '2023-07-01' + INTERVAL '-10 day')) AND "public"."events"."at" < timestamptz '2023-07-01' GROUP BY 1 ORDER BY 1

SELECT count(*) AS active FROM users WHERE created_at > now() - interval '30 years' AND is_active

SELECT "public"."order_facts"."country" AS "country", "public"."order_facts"."tier" AS "tier", SUM("public"."order_facts"."total") AS "sum" FROM "public"."order_facts" GROUP BY 1, 2 ORDER BY 1, 2

WITH "first_orders" AS (SELECT user_id, min(created_at) AS first_at FROM orders GROUP BY user_id) SELECT date_trunc('month', first_at) AS cohort, count(*) FROM "first_orders" GROUP BY 1 ORDER BY 1
