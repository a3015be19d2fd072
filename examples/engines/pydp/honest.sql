-- name: count
-- expect: no evidence
SELECT people_count(1.0);

-- name: sum with bounds
-- expect: no evidence
SELECT people_sum(0, 100, 1.0);

-- name: mean with bounds
-- expect: no evidence
SELECT people_mean(0, 100, 1.0);
