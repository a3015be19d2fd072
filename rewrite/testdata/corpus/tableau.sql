-- Tableau: cursors, CAST of everything, temporary names
declare "SQL_CUR0x7f8b1c0a2000" cursor with hold for SELECT "orders"."status" AS "status", SUM("orders"."total") AS "sum:total:ok" FROM "public"."orders" "orders" GROUP BY 1

declare "SQL_CUR0x55aa00010" cursor with hold for SELECT DATE_TRUNC( 'MONTH', CAST("orders"."created_at" AS DATE) ) AS "tmn:created_at:ok", COUNT(DISTINCT "orders"."user_id") AS "ctd:user_id:ok" FROM "public"."orders" "orders" INNER JOIN "public"."users" "users" ON ("orders"."user_id" = "users"."id") WHERE ("users"."country" IN ('DE', 'FR')) GROUP BY 1

DECLARE "SQL_CUR1" CURSOR FOR SELECT CAST("users"."name" AS TEXT) AS "name", CAST("users"."email" AS TEXT) AS "email" FROM "public"."users" "users" GROUP BY 1, 2

DECLARE "SQL_CUR2" SCROLL CURSOR WITHOUT HOLD FOR SELECT MIN("users"."city") AS "TEMP(attr:city:nk)(1)(0)", MAX("users"."city") AS "TEMP(attr:city:nk)(2)(0)" FROM "public"."users" "users" HAVING (COUNT(1) > 0)

SELECT CAST("orders"."status" AS TEXT) AS "status", SUM("orders"."total") AS "sum:total:ok" FROM "public"."orders" "orders" WHERE ((CAST("orders"."created_at" AS DATE) >= (DATE '2023-03-01')) AND (CAST("orders"."created_at" AS DATE) <= (DATE '2023-11-30'))) GROUP BY 1

SELECT (CASE WHEN ("orders"."status" = 'paid') THEN "orders"."total" WHEN NOT ("orders"."status" = 'paid') THEN 0 ELSE NULL END) AS "Calculation_1", "orders"."id" AS "id" FROM "public"."orders" "orders" ORDER BY 2

SELECT CAST(DATE_PART('YEAR', "orders"."created_at") AS INTEGER) AS "yr:created_at:ok", AVG(CAST("orders"."total" AS DOUBLE PRECISION)) AS "avg:total:ok" FROM "public"."orders" "orders" GROUP BY 1

SELECT "t0"."country" AS "country", "t1"."__measure__0" / "t0"."__measure__1" AS "ratio" FROM (SELECT "users"."country" AS "country", COUNT(DISTINCT "users"."id") AS "__measure__1" FROM "public"."users" "users" GROUP BY 1) "t0" INNER JOIN (SELECT "users"."country" AS "country", SUM("orders"."total") AS "__measure__0" FROM "public"."users" "users" INNER JOIN "public"."orders" "orders" ON "orders"."user_id" = "users"."id" GROUP BY 1) "t1" ON (("t0"."country" = "t1"."country") OR (("t0"."country" IS NULL) AND ("t1"."country" IS NULL)))

SELECT "Custom SQL Query"."name" AS "name", SUM("Custom SQL Query"."n") AS "sum:n:ok" FROM (select u.name, count(*) as n from users u join events e on e.user_id = u.id group by u.name) "Custom SQL Query" GROUP BY 1

SELECT COUNT(1) AS "cnt:ok", FLOOR("orders"."total" / 10) AS "total (bin)" FROM "public"."orders" "orders" GROUP BY 2 HAVING (COUNT(1) > 0)

SELECT LEFT("users"."name", 4) AS "l", RIGHT("users"."name", 1) AS "r", UPPER("users"."city") AS "u", TRIM(BOTH FROM "users"."city") AS "t", POSITION('e' IN "users"."name") AS "p" FROM "public"."users" "users" GROUP BY 1, 2, 3, 4, 5

SELECT ASCII("users"."name") AS "a", REPLACE("users"."name", 'Name', 'N') AS "b", SPLIT_PART("users"."name", ' ', 2) AS "c", REGEXP_REPLACE("users"."city", '[0-9]', '', 'g') AS "d" FROM "public"."users" "users" ORDER BY 2, 3

SELECT TO_CHAR("orders"."created_at", 'Day') AS "weekday", (EXTRACT(ISODOW FROM "orders"."created_at")) AS "n", SUM(1) AS "sum:Number of Records:ok" FROM "public"."orders" "orders" GROUP BY 1, 2

SELECT SUM("t"."x_measure") AS "total" FROM (SELECT "orders"."user_id" AS "user_id", MAX("orders"."total") AS "x_measure" FROM "public"."orders" "orders" GROUP BY 1) "t"

SELECT "orders"."user_id" AS "user_id", (MAX("orders"."created_at") - MIN("orders"."created_at")) AS "span", (CAST(MAX("orders"."created_at") AS DATE) - CAST(MIN("orders"."created_at") AS DATE)) AS "days" FROM "public"."orders" "orders" GROUP BY 1

SELECT "users"."country" AS "country" FROM "public"."users" "users" WHERE (("users"."country" >= 'A') AND ("users"."country" <= 'ZZ')) GROUP BY 1 ORDER BY 1 ASC NULLS FIRST LIMIT 1000

SELECT "products"."brand" AS "brand", SUM(("order_items"."price" * "order_items"."quantity") * (1 - "order_items"."discount")) AS "revenue" FROM "public"."order_items" "order_items" LEFT JOIN "public"."products" "products" ON ("order_items"."product_id" = "products"."id") GROUP BY 1

SELECT "users"."id" AS "id" FROM "public"."users" "users" WHERE "users"."id" IN (SELECT "orders"."user_id" AS "none:user_id:ok" FROM "public"."orders" "orders" GROUP BY 1 HAVING (SUM("orders"."total") > 500)) ORDER BY 1

SELECT SUM("orders"."total") AS "s", STDDEV("orders"."total") AS "sd", VARIANCE("orders"."total") AS "v", CORR(CAST("orders"."total" AS FLOAT), "orders"."id") AS "c" FROM "public"."orders" "orders"

SELECT ("orders"."created_at" + 2 * INTERVAL '1 MONTH') AS "later", MAKE_DATE(EXTRACT(YEAR FROM "orders"."created_at")::int, 1, 1) AS "y" FROM "public"."orders" "orders" GROUP BY 1, 2

SELECT "users"."is_active" AS "is_active", COUNT(DISTINCT (CASE WHEN "users"."is_active" THEN "users"."id" ELSE NULL END)) AS "active", SUM((CASE WHEN "users"."is_active" THEN 1 ELSE 0 END)) AS "n" FROM "public"."users" "users" GROUP BY 1
