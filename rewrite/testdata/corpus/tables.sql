-- The protected tables, in the schema {s}; {n} users tell the neighbours apart.
CREATE TABLE {s}.users (id int PRIMARY KEY, email public.citext, name text, tier public.tier, country text, city varchar(40), birthday date, created_at timestamptz, is_active bool, referrer text, tags text[], props jsonb, attrs public.hstore, parent_id int);
INSERT INTO {s}.users SELECT i, 'User' || i || '@Example.org', 'Name ' || i, (ARRAY['free', 'pro', 'business'])[1 + i % 3]::public.tier, (ARRAY['DE', 'FR', 'US', NULL])[1 + i % 4], 'City ' || i % 5, date '1970-01-01' + 300 * i,
	timestamptz '2023-01-01 08:00+00' + i * interval '9 days 5 hours', i % 5 <> 0, (ARRAY['ads', 'organic', 'https://www.friend.com/x?utm_source=mail&id=' || i])[1 + i % 3], ARRAY['t' || i % 3, 'all'],
	jsonb_build_object('plan', (ARRAY['a', 'b'])[1 + i % 2], 'seats', i, 'address', jsonb_build_object('zip', 10000 + i)), public.hstore('k', i::text), nullif(i / 2, 0) FROM generate_series(1, {n}) i;
CREATE TABLE {s}.orders (id int PRIMARY KEY, user_id int, store_id int, status text, total numeric(12,2), discount numeric(12,2), currency char(3), created_at timestamp, shipped_at date, priority text, comment text);
INSERT INTO {s}.orders SELECT i, 1 + i % {n}, 1 + i % 6, (ARRAY['paid', 'open', 'refunded', 'shipped'])[1 + i % 4], 20 + i * 3.75, nullif(i % 4, 0), (ARRAY['EUR', 'USD'])[1 + i % 2], timestamp '2023-02-01 10:30' + i * interval '2 days 7 hours',
	CASE WHEN i % 4 = 3 THEN date '2023-02-03' + 2 * i END, (ARRAY['1-URGENT', '2-HIGH', '3-LOW'])[1 + i % 3], 'comment ' || i || CASE WHEN i % 7 = 0 THEN ' special requests' ELSE '' END FROM generate_series(1, 6 * {n}) i;
CREATE TABLE {s}.order_items (id int PRIMARY KEY, order_id int, product_id int, quantity int, price numeric(12,2), discount numeric(4,2), returned bool, shipped date, received date, mode text);
INSERT INTO {s}.order_items SELECT i, 1 + i % (6 * {n}), 1 + i % 20, 1 + i % 9, 4 + i * 0.5, (i % 5) / 10.0, i % 8 = 0, date '2023-02-10' + i, date '2023-02-13' + i + i % 6, (ARRAY['MAIL', 'SHIP', 'AIR'])[1 + i % 3] FROM generate_series(1, 18 * {n}) i;
CREATE TABLE {s}.events (id bigint PRIMARY KEY, user_id int, session_id uuid, name text, at timestamptz, duration_ms float8, url text, props jsonb);
INSERT INTO {s}.events SELECT i, 1 + i % {n}, md5((i / 4)::text)::uuid, (ARRAY['view', 'cart', 'checkout', 'purchase', 'view'])[1 + i % 5], timestamptz '2023-06-01 00:00+00' + i * interval '5 hours 17 minutes', 10 + (i * 37) % 900,
	'/p/' || i % 9 || '?ref=' || i % 3, jsonb_build_object('browser', (ARRAY['ff', 'chrome'])[1 + i % 2], 'n', i) FROM generate_series(1, 20 * {n}) i;
CREATE TABLE {s}.subscriptions (id int PRIMARY KEY, user_id int, plan text, started date, ended date, mrr numeric(10,2));
INSERT INTO {s}.subscriptions SELECT i, i, (ARRAY['basic', 'plus'])[1 + i % 2], date '2023-01-15' + 11 * i, CASE WHEN i % 3 = 0 THEN date '2023-09-01' + i END, 9.9 * (1 + i % 3) FROM generate_series(1, {n}) i;
CREATE VIEW {s}.order_facts AS SELECT o.id, o.user_id, o.status, o.total, o.created_at::date AS day, u.country, u.tier FROM {s}.orders o JOIN {s}.users u ON u.id = o.user_id;
