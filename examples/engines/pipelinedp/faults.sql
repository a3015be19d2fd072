-- name: VECTOR_SUM of a private partition: the noise ignores the norm
-- expect: violation in 0.2.1, no evidence in 0.3.1
-- cause: noise_scale
-- named: clipping, noise_scale
-- known: https://github.com/OpenMined/PipelineDP/issues/552
-- issue: pipelinedp-vector-sum
SELECT people_vector_sum(1000, 1.0, 0.001);

-- name: SUM of a column with one NaN
-- expect: violation in 0.3.1
-- cause: not_a_number
-- known: new
SELECT people_income('SUM', 0, 5000, 1.0);

-- name: MEAN of a column with one NaN
-- expect: violation in 0.3.1
-- cause: not_a_number
-- known: new
SELECT people_income('MEAN', 0, 5000, 1.0);

-- name: VARIANCE of a column with one NaN
-- expect: violation in 0.3.1
-- cause: not_a_number
-- known: new
SELECT people_income('VARIANCE', 0, 5000, 1.0);
