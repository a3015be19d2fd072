-- Apache Superset: charts over tables and virtual datasets, SQL Lab
SELECT DATE_TRUNC('day', created_at) AS __timestamp, COUNT(*) AS count FROM public.orders WHERE created_at >= TO_TIMESTAMP('2023-03-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND created_at < TO_TIMESTAMP('2023-12-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('day', created_at) ORDER BY count DESC, 1 LIMIT 10000

SELECT country AS country, tier AS tier, sum(total) AS "SUM(total)" FROM (SELECT u.country, u.tier, o.total FROM users u JOIN orders o ON o.user_id = u.id) AS virtual_table GROUP BY country, tier ORDER BY "SUM(total)" DESC, 1, 2 LIMIT 50000

SELECT status AS status, AVG(total) AS "AVG(total)", COUNT(DISTINCT user_id) AS "Buyers" FROM public.orders WHERE status IN ('paid', 'shipped') GROUP BY status HAVING (COUNT(*) > 1) ORDER BY "AVG(total)" DESC LIMIT 100

SELECT DATE_TRUNC('month', o.created_at) AS __timestamp, p.category AS category, SUM(i.quantity) AS sum__quantity FROM order_items i JOIN orders o ON o.id = i.order_id JOIN products p ON p.id = i.product_id JOIN (SELECT p.category AS category__, SUM(i.quantity) AS mme_inner__ FROM order_items i JOIN products p ON p.id = i.product_id GROUP BY p.category ORDER BY mme_inner__ DESC, 1 LIMIT 2) AS anon_1 ON p.category = category__ GROUP BY DATE_TRUNC('month', o.created_at), p.category ORDER BY 1, 2

SELECT COUNT(*) AS count FROM public.users WHERE created_at >= '2023-01-01 00:00:00.000000' AND created_at < '2024-01-01 00:00:00.000000'

SELECT name, email, city FROM public.users WHERE email ILIKE '%example%' ORDER BY id LIMIT 101

SELECT DATE_TRUNC('week', at) AS __timestamp, percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ms) AS p95 FROM events GROUP BY 1 ORDER BY 1

SELECT split_part(url, '?', 1) AS path, count(*) AS hits, count(DISTINCT session_id) AS sessions FROM events GROUP BY 1 ORDER BY hits DESC, path LIMIT 20

SELECT replace(lower(name), ' ', '_') AS slug, translate(country, 'DE', 'de') AS c, strpos(email::text, '@') AS at FROM users ORDER BY id

SELECT max(name) AS max, min(city) AS min, max(created_at) AS latest FROM users

SELECT country, count(*) AS n, round(100.0 * count(*) / sum(count(*)) OVER (), 2) AS share FROM users GROUP BY country ORDER BY n DESC, country NULLS LAST

SELECT unnest(tags) AS tag, count(*) FROM users GROUP BY 1 ORDER BY 1

SELECT width_bucket(total, 0, 300, 10) AS bucket, count(*), min(total), max(total) FROM orders GROUP BY 1 ORDER BY 1

SELECT to_char(created_at, 'YYYY-MM') AS month, sum(total) FILTER (WHERE status = 'paid') AS paid, sum(total) FILTER (WHERE status <> 'paid') AS other FROM orders GROUP BY 1 ORDER BY 1

SELECT props ->> 'plan' AS plan, avg((props ->> 'seats')::numeric) AS seats FROM users WHERE props ? 'plan' AND props @> '{"plan": "a"}' GROUP BY 1

SELECT e.key, count(*) FROM users u, jsonb_each_text(u.props) AS e GROUP BY e.key ORDER BY 1

SELECT attrs -> 'k' AS k, count(*) FROM users GROUP BY 1 ORDER BY 1

SELECT country, city, sum(total) AS total, GROUPING(country, city) AS g FROM users JOIN orders ON orders.user_id = users.id GROUP BY ROLLUP (country, city) ORDER BY country NULLS LAST, city NULLS LAST, g

SELECT u.country, date_trunc('quarter', o.created_at)::date AS q, sum(o.total) AS revenue, rank() OVER (PARTITION BY date_trunc('quarter', o.created_at)::date ORDER BY sum(o.total) DESC) AS r FROM users u JOIN orders o ON u.id = o.user_id GROUP BY 1, 2 ORDER BY 2, 4, 1 NULLS LAST

SELECT count(*) AS n FROM users WHERE similarity(name, 'Name 1') > 0.4 OR unaccent(city) = 'City 1'

SELECT encode(digest(email::text, 'sha256'), 'hex') AS pseudonym, count(*) FROM users u JOIN orders o ON o.user_id = u.id GROUP BY 1 ORDER BY 1

SELECT * FROM (SELECT id, name, country, row_number() OVER (PARTITION BY country ORDER BY created_at DESC) AS rn FROM users) AS ranked WHERE rn <= 2 ORDER BY country NULLS FIRST, rn

SELECT corr(total, discount) AS correlation, regr_slope(total, discount) AS slope FROM orders

SELECT mode() WITHIN GROUP (ORDER BY status) AS common, array_agg(DISTINCT currency ORDER BY currency) AS currencies, string_agg(DISTINCT priority, ', ' ORDER BY priority) AS priorities FROM orders

SELECT date_part('epoch', max(created_at) - min(created_at)) / 86400 AS days, age(max(created_at), min(created_at)) AS age FROM orders

SELECT pg_typeof(total), pg_typeof(created_at), total FROM orders ORDER BY id LIMIT 1
