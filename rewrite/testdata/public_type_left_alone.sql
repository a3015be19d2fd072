SELECT kind::public.user_kind FROM users
