-- name: counts of groups, in 500 of which one person is alone: the threshold does not allow for so many of one person
-- expect: violation in 0.9.25, no evidence in 0.9.27
-- cause: contribution_bounds
-- named: contribution_bounds, partition_selection
-- known: https://github.com/Qrlew/qrlew/pull/297
SELECT place, COUNT(*) AS n FROM visits GROUP BY place;

-- name: count, which is clamped to the exact number of rows
-- expect: violation
-- cause: support
-- named: support, none, floating_point
-- known: new
SELECT COUNT(*) AS n FROM people;

-- name: LN of a person's 0 raises an error
-- expect: violation
-- cause: error
-- known: new
SELECT SUM(LN(income)) AS total FROM people;

-- name: SQRT of a person's negative number raises an error
-- expect: violation
-- cause: error
-- known: new
SELECT SUM(SQRT(income - 1)) AS total FROM people;
