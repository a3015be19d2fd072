/*dp_epsilon='0.5'*/ DECLARE "for" /* FOR x */ BINARY NO SCROLL CURSOR WITH HOLD FOR SELECT u.id, public.users.name FROM users u, public.users FOR READ ONLY
