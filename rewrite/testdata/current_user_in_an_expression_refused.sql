SELECT CASE WHEN current_user = 'a' THEN sum(income) ELSE count(*) END FROM users
