SELECT '_users'::regtype::text, 'public.__transactions'::regtype::text FROM users
