-- set search_path = ref
SELECT count(*) FROM transactions
