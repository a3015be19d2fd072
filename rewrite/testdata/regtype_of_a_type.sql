SELECT 'integer'::regtype, count(*) FROM users
