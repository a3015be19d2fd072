/* dp_epsilon='1',dp_delta='0' */
SELECT regions.region, round(clipped.total + 100 / 1.0 * (ln(1 - random()) - ln(1 - random()))) AS total
FROM (VALUES ('north'), ('south')) AS regions (region)
CROSS JOIN LATERAL (
  SELECT coalesce(sum(greatest(0, least(100, o.spent))), 0) AS total
  FROM customers AS c JOIN orders AS o ON o.customer = c.id
  WHERE c.region = regions.region
) AS clipped
ORDER BY regions.region
