SELECT q.ctid, count(*) FROM (SELECT id AS ctid FROM users) AS q GROUP BY q.ctid
