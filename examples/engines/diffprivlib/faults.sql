-- name: LinearRegression, where the sensitivity of x² is that of its lower bound: 0
-- expect: violation
-- cause: data_dependent_scale
-- named: data_dependent_scale, noise_scale, clipping, floating_point
-- known: https://github.com/IBM/differential-privacy-library/issues/105
-- issue: diffprivlib-linear-regression
SELECT people_slope(100, 100, 1.0);

-- name: mean without bounds, which come from the data; the library warns
-- expect: violation
-- cause: data_dependent_scale
-- named: data_dependent_scale, noise_scale, clipping
-- known: PrivacyLeakWarning of the library
SELECT people_spent(NULL, NULL, 1.0);

-- name: nanmean of a column with four values, whose noise is made for all rows
-- expect: violation
-- cause: noise_scale
-- named: noise_scale, clipping
-- known: new
SELECT people_score('nanmean', 0, 100, 1.0);

-- name: nanvar, the same
-- expect: violation
-- cause: noise_scale
-- named: noise_scale, clipping
-- known: new
SELECT people_score('nanvar', 0, 100, 1.0);

-- name: nanstd, the same
-- expect: violation
-- cause: noise_scale
-- named: noise_scale, clipping
-- known: new
SELECT people_score('nanstd', 0, 100, 1.0);

-- name: median of a column with one NaN
-- expect: violation
-- cause: not_a_number
-- known: https://github.com/IBM/differential-privacy-library/issues/80
SELECT people_income('median', 0, 5000, 1.0);

-- name: mean of a column with one NaN
-- expect: violation
-- cause: not_a_number
-- known: https://github.com/IBM/differential-privacy-library/issues/80
SELECT people_income('mean', 0, 5000, 1.0);

-- name: sum of a column with one NaN
-- expect: violation
-- cause: not_a_number
-- known: https://github.com/IBM/differential-privacy-library/issues/80
SELECT people_income('sum', 0, 5000, 1.0);

-- name: count of one or no person with the Laplace mechanism: the low bits
-- expect: violation
-- cause: floating_point
-- known: https://github.com/IBM/differential-privacy-library/issues/94
SELECT people_rich(50, 1.0);
