SELECT anon_count(id, 0.5) FROM patients WHERE diagnosis = 'rare'
