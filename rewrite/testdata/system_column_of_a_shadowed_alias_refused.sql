SELECT q.ctid FROM (SELECT id AS ctid FROM users) AS q UNION ALL SELECT q.ctid FROM transactions q
