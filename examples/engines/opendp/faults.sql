-- name: counts of public keys, some of which are empty: these have one noise
-- expect: violation in 0.12.1, no evidence in 0.16.0
-- cause: shared_noise
-- known: not in 0.16.0
-- issue: opendp-empty-groups
SELECT people_cities(ARRAY['Paris', 'Rome', 'Oslo', 'Bern', 'Lima', 'Kyiv'], 1.0);
