SELECT anon_count(id, 1.0) FROM user_view
