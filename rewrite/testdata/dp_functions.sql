SELECT anon_count(id, 0.5), dp.noisy(sum(spent)::float8, 1.0, 1e-6), clip(avg(spent), 0, 10), util.bucket(spent) FROM transactions
