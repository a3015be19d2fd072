-- set search_path = ref, public
SELECT count(*) FROM users JOIN transactions ON true
