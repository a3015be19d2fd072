-- Grafana: macros as they reach the server
SELECT floor(extract(epoch from at)/86400)*86400 AS "time", count(*) AS "value" FROM events WHERE at BETWEEN '2023-06-01T00:00:00Z' AND '2023-09-01T00:00:00Z' GROUP BY 1 ORDER BY 1

SELECT date_bin('6 hours', at, timestamptz '2023-06-01T00:00:00Z') AS "time", avg(duration_ms) AS "avg", max(duration_ms) AS "max" FROM events WHERE at >= '2023-06-01T00:00:00Z' AND at <= '2023-06-20T00:00:00Z' GROUP BY 1 ORDER BY 1

SELECT extract(epoch from created_at) AS time, total AS value, status AS metric FROM orders WHERE extract(epoch from created_at) >= 1675000000 AND extract(epoch from created_at) <= 1685000000 ORDER BY created_at

SELECT g.t AS "time", count(e.id) AS "events" FROM generate_series(timestamptz '2023-06-01 00:00+00', timestamptz '2023-06-10 00:00+00', interval '1 day') AS g(t) LEFT JOIN events e ON e.at >= g.t AND e.at < g.t + interval '1 day' GROUP BY 1 ORDER BY 1

SELECT time_bucket.t AS time, name AS metric, sum(1) FROM (SELECT date_trunc('hour', at) AS t, name FROM events) AS time_bucket GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 100

SELECT name AS __text, id AS __value FROM users ORDER BY name

SELECT percentile_disc(ARRAY[0.5, 0.9, 0.99]) WITHIN GROUP (ORDER BY duration_ms) AS p FROM events WHERE name = ANY (ARRAY['view', 'cart'])

SELECT now() > max(created_at) AS late, count(*) FILTER (WHERE created_at > now() - interval '5 minutes') AS recent FROM orders

SELECT status AS metric, count(*) AS value FROM orders WHERE status ~ '^(paid|open)$' GROUP BY status ORDER BY value DESC, 1

SELECT (at AT TIME ZONE 'UTC')::date AS day, count(DISTINCT user_id) AS dau, count(DISTINCT user_id) FILTER (WHERE name = 'purchase') AS buyers FROM events GROUP BY 1 ORDER BY 1

SELECT to_timestamp(floor(extract(epoch from created_at) / 604800) * 604800) AS time, sum(total) - lag(sum(total)) OVER (ORDER BY floor(extract(epoch from created_at) / 604800)) AS delta FROM orders GROUP BY floor(extract(epoch from created_at) / 604800) ORDER BY 1

SELECT count(*) AS "Users", (SELECT count(*) FROM orders) AS "Orders", (SELECT sum(mrr) FROM subscriptions WHERE ended IS NULL) AS "MRR" FROM users

SELECT name, at FROM (SELECT name, at, lead(at) OVER (PARTITION BY user_id ORDER BY at) AS next_at FROM events) x WHERE next_at - at > interval '10 hours' ORDER BY at LIMIT 20

SELECT regexp_replace(url, '\?.*$', '') AS path, avg(duration_ms)::numeric(10,2) AS "avg ms" FROM events GROUP BY 1 ORDER BY 1
