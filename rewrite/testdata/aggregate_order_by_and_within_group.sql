SELECT array_agg(u.id ORDER BY (SELECT max(spent) FROM transactions t WHERE t.user_id = u.id), u.id), percentile_cont(0.5) WITHIN GROUP (ORDER BY u.income) FROM users u
