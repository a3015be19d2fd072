-- name: mean, with the reader's epsilon as the claim; get_privacy_cost says 3 times as much
-- expect: violation
-- claim: 1
-- cause: composition
-- named: composition, noise_scale, noise_family
-- known: https://github.com/opendp/smartnoise-sdk/issues/385
SELECT AVG(balance) AS mean FROM people;

-- name: sum of the column by which the groups are made, which is not clamped
-- expect: violation
-- cause: clipping
-- named: clipping, noise_scale
-- known: new
SELECT bonus, SUM(bonus) AS total FROM people GROUP BY bonus;

-- name: LN of a person's 0 raises an error
-- expect: violation
-- cause: error
-- known: new
SELECT COUNT(*) AS n FROM people WHERE LN(income) > 1;

-- name: SQRT of a person's negative number raises an error
-- expect: violation
-- cause: error
-- known: new
SELECT COUNT(*) AS n FROM people WHERE SQRT(income - 1) > 1;
