COPY /* a ( */ (SELECT u.id, public.users.name FROM users u, public.users -- b )
) TO STDOUT WITH (FORMAT csv, HEADER) /*dp_epsilon='0.5'*/
