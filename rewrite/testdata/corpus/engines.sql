-- Statements with differentially private functions, COPY, and hand-written questions
SELECT laplace(count(*), 0.5) FROM users

/*dp_epsilon='0.5'*/ SELECT country, laplace(sum(total)::float8, 0.5) AS total FROM order_facts GROUP BY country HAVING laplace(count(*), 0.1) > 1 ORDER BY country NULLS LAST

COPY (SELECT status, laplace(count(*), 1.0) FROM orders GROUP BY status ORDER BY 1) TO STDOUT WITH (FORMAT csv, HEADER)

TABLE subscriptions ORDER BY id LIMIT 3

SELECT name(u), country(u), u.id FROM users u ORDER BY u.id

SELECT u.name, u.tier, enum_range(u.tier) AS above, u.tier >= 'pro' AS paying FROM users u ORDER BY u.id

SELECT version() IS NOT NULL AS v, count(*), pg_column_size(max(name)) AS bytes, COLLATION FOR (max(name)) AS c FROM users

SELECT extract(isoyear FROM created_at) AS y, count(*) FROM orders TABLESAMPLE BERNOULLI (100) GROUP BY 1

SELECT count(*) FROM users, pg_sleep(0)

SELECT u.id, clip.x FROM users u, LATERAL (VALUES (least(greatest(u.id, 2), 5))) AS clip(x) ORDER BY 1

SELECT xmlelement(name u, xmlattributes(u.id AS id), u.name)::text FROM users u ORDER BY u.id

SELECT current_user AS who, count(*) FROM users

SELECT c.reltuples >= -1 AS known, count(*) FROM users, pg_class c WHERE c.oid = 'users'::regclass GROUP BY 1

SELECT (u).name, (users_row).id FROM users u, LATERAL (SELECT u AS users_row) r ORDER BY 2

SELECT array_agg(u ORDER BY u.id) IS NOT NULL AS some, count(u), count(u.*) FROM users u

SELECT u.* FROM users u WHERE u.email = 'USER3@example.org'

SELECT max(email), min(email), count(DISTINCT email), max(email::text) FROM users

SELECT ts_rank(to_tsvector('english', comment), plainto_tsquery('english', 'special')) AS r, count(*) FROM orders WHERE to_tsvector('english', comment) @@ to_tsquery('english', 'special & requests') GROUP BY 1

SELECT json_object_agg(status, n) AS j FROM (SELECT status, count(*) AS n FROM orders GROUP BY status ORDER BY status) s

SELECT format('%s (%s)', u.name, u.country) AS f, reverse(u.name), repeat('x', 2), lpad(u.id::text, 4, '0'), chr(65 + u.id % 26), initcap(u.city) FROM users u ORDER BY u.id

SELECT setting.n, count(*) FROM users, (SELECT current_setting('dp.bucket', true) AS n) setting GROUP BY 1

SELECT date_trunc('month', d)::date AS m, count(u.id) FROM generate_series(date '2023-01-01', date '2023-12-01', '1 month') d LEFT JOIN users u ON u.created_at >= d AND u.created_at < d + interval '1 month' GROUP BY 1 ORDER BY 1

SELECT o.id, age(date '2024-01-01', o.created_at) > interval '6 months' AS old, o.created_at::time AS at, o.created_at + o.discount * interval '1 hour' AS later FROM orders o ORDER BY 1 LIMIT 9

EXPLAIN SELECT count(*) FROM users
