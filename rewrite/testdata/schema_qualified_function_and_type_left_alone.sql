SELECT dp.noisy(u.income, 0.5, 1e-6), util.bucket(u.income), pg_catalog.upper(u.name), 'low'::public.user_kind, CAST('(x)' AS public.address) FROM users u
