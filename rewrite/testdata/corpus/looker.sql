-- Looker: explores, symmetric aggregates, row limits by FETCH NEXT
SELECT (DATE(orders.created_at )) AS "orders.created_date", COUNT(*) AS "orders.count" FROM public.orders AS orders GROUP BY 1 ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY

SELECT users.country AS "users.country", COALESCE(SUM(orders.total ), 0) AS "orders.total_revenue" FROM public.orders AS orders LEFT JOIN public.users AS users ON orders.user_id = users.id WHERE ((( orders.created_at ) >= ((DATE_TRUNC('day', TIMESTAMP '2023-12-01') + (-300 || ' day')::INTERVAL)))) GROUP BY 1 ORDER BY 2 DESC, 1 FETCH NEXT 500 ROWS ONLY

SELECT users.country AS "users.country", COALESCE(COALESCE(CAST( ( SUM(DISTINCT (CAST(FLOOR(COALESCE( orders.total ,0)*(1000000*1.0)) AS DECIMAL(65,0))) + ('x' || MD5( orders.id ::varchar))::bit(64)::bigint::DECIMAL(65) *18446744073709551616 + ('x' || SUBSTR(MD5( orders.id ::varchar),17))::bit(64)::bigint::DECIMAL(65) ) - SUM(DISTINCT ('x' || MD5( orders.id ::varchar))::bit(64)::bigint::DECIMAL(65) *18446744073709551616 + ('x' || SUBSTR(MD5( orders.id ::varchar),17))::bit(64)::bigint::DECIMAL(65)) ) AS DOUBLE PRECISION) / CAST((1000000*1.0) AS DOUBLE PRECISION), 0), 0) AS "orders.total" FROM public.order_items AS order_items LEFT JOIN public.orders AS orders ON order_items.order_id = orders.id LEFT JOIN public.users AS users ON orders.user_id = users.id GROUP BY 1 ORDER BY 1 FETCH NEXT 500 ROWS ONLY

SELECT TO_CHAR(DATE_TRUNC('month', orders.created_at ), 'YYYY-MM') AS "orders.created_month", COUNT(DISTINCT orders.id ) AS "orders.count", COUNT(DISTINCT users.id ) AS "users.count" FROM public.orders AS orders INNER JOIN public.users AS users ON orders.user_id = users.id GROUP BY (DATE_TRUNC('month', orders.created_at )) ORDER BY 1

SELECT CASE WHEN users.is_active THEN 'Yes' ELSE 'No' END AS "users.is_active", AVG(EXTRACT(YEAR FROM AGE(DATE '2024-01-01', users.birthday))) AS "users.average_age" FROM public.users AS users GROUP BY 1

SELECT CASE WHEN orders.total < 50 THEN '0' WHEN orders.total >= 50 AND orders.total < 150 THEN '1' ELSE '2' END AS "orders.tier__sort_", CASE WHEN orders.total < 50 THEN 'Below 50' WHEN orders.total >= 50 AND orders.total < 150 THEN '50 to 149' ELSE '150 or Above' END AS "orders.tier", COUNT(*) AS "n" FROM public.orders AS orders GROUP BY 1, 2 ORDER BY 1

SELECT * FROM (SELECT *, DENSE_RANK() OVER (ORDER BY z___min_rank) as z___pivot_row_rank, RANK() OVER (PARTITION BY z__pivot_col_rank ORDER BY z___min_rank) as z__pivot_col_ordering FROM (SELECT *, MIN(z___rank) OVER (PARTITION BY "users.country") as z___min_rank FROM (SELECT *, RANK() OVER (ORDER BY "users.country" ASC, z__pivot_col_rank) AS z___rank FROM (SELECT *, DENSE_RANK() OVER (ORDER BY "orders.status") AS z__pivot_col_rank FROM (SELECT orders.status AS "orders.status", users.country AS "users.country", COUNT(*) AS "orders.count" FROM public.orders AS orders LEFT JOIN public.users AS users ON orders.user_id = users.id GROUP BY 1,2) ww) aa) bb) xx) zz WHERE (z__pivot_col_rank <= 50 OR z__pivot_col_ordering = 1) AND (z___pivot_row_rank <= 500 OR z__pivot_col_ordering = 1) ORDER BY z___pivot_row_rank, z__pivot_col_rank

WITH user_facts AS (SELECT user_id, COUNT(*) AS lifetime_orders, SUM(total) AS lifetime_revenue, MIN(created_at) AS first_order FROM public.orders GROUP BY 1) SELECT user_facts.lifetime_orders AS "user_facts.lifetime_orders", COUNT(DISTINCT users.id) AS "users.count" FROM public.users AS users LEFT JOIN user_facts ON users.id = user_facts.user_id GROUP BY 1 ORDER BY 1

SELECT users.email AS "users.email" FROM public.users AS users WHERE (users.email ILIKE '%1@example%') GROUP BY 1 ORDER BY 1 FETCH NEXT 1000 ROWS ONLY

SELECT COUNT(CASE WHEN (orders.status = 'paid') THEN 1 ELSE NULL END) AS "paid", 1.0 * COUNT(CASE WHEN (orders.status = 'refunded') THEN 1 ELSE NULL END) / NULLIF(COUNT(*), 0) AS "rate" FROM public.orders AS orders

SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY orders.total) AS "p25", PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY orders.total) AS "p75" FROM public.orders AS orders

SELECT DATE_PART('day', order_items.received::timestamp - order_items.shipped::timestamp)::int AS "days", COUNT(*) AS "n" FROM public.order_items AS order_items GROUP BY 1 ORDER BY 1

SELECT (EXTRACT(DOW FROM orders.created_at )::integer) AS "d", (CAST(EXTRACT(HOUR FROM orders.created_at ) AS INT)) AS "h", COUNT(*) AS "n" FROM public.orders AS orders GROUP BY 1,2 ORDER BY 1,2

SELECT orders.id AS "orders.id", orders.total - COALESCE(orders.discount, 0) AS "net", CASE WHEN COUNT(order_items.id) > 2 THEN 'many' ELSE 'few' END AS "items" FROM public.orders AS orders LEFT JOIN public.order_items AS order_items ON order_items.order_id = orders.id GROUP BY 1, 2 HAVING COUNT(order_items.id) >= 1 ORDER BY 1

SELECT COALESCE(SUM(CASE WHEN (products.category = 'Books') THEN order_items.price ELSE NULL END), 0) AS "books" FROM public.order_items AS order_items LEFT JOIN public.products AS products ON order_items.product_id = products.id WHERE (NOT COALESCE(order_items.returned, FALSE))

SELECT string_agg(DISTINCT products.category, '|RECORD|' ORDER BY products.category) AS "list" FROM public.order_items AS order_items LEFT JOIN public.products AS products ON order_items.product_id = products.id

SELECT CONCAT(split_part(users.name, ' ', 1), '-', md5(users.email::text)) AS "k", COUNT(*) AS "n" FROM public.users AS users GROUP BY 1 ORDER BY 1

SELECT users.tags[1] AS "tag", array_length(users.tags, 1) AS "n", 'all' = ANY(users.tags) AS "all" FROM public.users AS users ORDER BY users.id
