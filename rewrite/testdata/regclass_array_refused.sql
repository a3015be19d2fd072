SELECT '{users}'::regclass[] FROM users
