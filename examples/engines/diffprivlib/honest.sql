-- name: count
-- expect: no evidence
SELECT people_count(50, 1.0);

-- name: mean with bounds, rounded
-- expect: no evidence
SELECT people_mean(0, 100, 1.0);

-- name: histogram
-- expect: no evidence
SELECT people_histogram(8, 0, 80, 1.0);
