-- name: count
-- expect: no evidence
SELECT people_count(1.0);

-- name: sum with bounds
-- expect: no evidence
SELECT people_sum(0, 100, 1.0);

-- name: histogram
-- expect: no evidence
SELECT people_histogram(ARRAY[2, 3, 4, 5, 6, 7], 1.0);
