SELECT 'app.secret'::regclass, count(*) FROM users
