-- name: count
-- expect: no evidence
SELECT people_count(1.0);

-- name: sum with bounds
-- expect: no evidence
SELECT people_age('SUM', 0, 100, 1.0);

-- name: mean with bounds
-- expect: no evidence
SELECT people_age('MEAN', 0, 100, 1.0);

-- name: counts of public partitions
-- expect: no evidence
SELECT people_cities(ARRAY['Paris', 'Rome', 'Oslo', 'Bern'], 1.0);
