-- set search_path = app, public
SELECT count(*) FROM "Order Lines", users
