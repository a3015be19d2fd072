SELECT u.id, l.n, g FROM users u, LATERAL (SELECT count(*) AS n FROM transactions t WHERE t.user_id = u.id) l LEFT JOIN LATERAL generate_series(1, l.n) g ON true
