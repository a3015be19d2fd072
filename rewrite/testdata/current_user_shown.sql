SELECT current_user, session_user::text AS "by", count(*) FROM users GROUP BY current_user
