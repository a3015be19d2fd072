SELECT spent::numeric(10, 2), CAST(now() AT TIME ZONE 'UTC' AS date), interval '1 day', 'x'::text COLLATE "C" FROM transactions
