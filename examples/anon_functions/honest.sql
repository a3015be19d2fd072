SELECT anon_count(id, 0.5), anon_sum_with_bounds(age, 0, 100, 0.5) FROM patients
