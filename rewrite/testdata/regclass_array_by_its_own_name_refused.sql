SELECT '{users}'::_regclass, id FROM users
