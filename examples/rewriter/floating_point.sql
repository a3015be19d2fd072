/* dp_epsilon='1',dp_delta='0' */
SELECT regions.region, clipped.total + 100 / 1.0 * (ln(1 - random()) - ln(1 - random())) AS total
FROM (VALUES ('north'), ('south')) AS regions (region)
CROSS JOIN LATERAL (
  SELECT coalesce(sum(greatest(0, least(100, units.spent))), 0) AS total
  FROM (
    SELECT c.id, sum(o.spent) AS spent
    FROM customers AS c JOIN orders AS o ON o.customer = c.id
    WHERE c.region = regions.region
    GROUP BY c.id
  ) AS units
) AS clipped
ORDER BY regions.region
