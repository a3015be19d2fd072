SELECT 'public.users'::regtype FROM users
