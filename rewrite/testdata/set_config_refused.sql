SELECT set_config('search_path', 'x', false) FROM users
