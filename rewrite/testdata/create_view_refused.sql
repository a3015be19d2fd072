CREATE VIEW v AS SELECT count(*) FROM users
