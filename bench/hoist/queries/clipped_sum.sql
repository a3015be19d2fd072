WITH j (id, income, class, tid, uid, store, other, spent) AS (SELECT * FROM users AS l JOIN transactions AS r ON r.user_id = l.id),
m (unit, spent) AS (SELECT md5(id::text), spent FROM j),
n (unit, norm) AS (SELECT unit, abs(sum(spent)) FROM m GROUP BY unit),
c (spent) AS (SELECT m.spent / greatest(1, n.norm / 5000) FROM m LEFT JOIN n ON n.unit = m.unit),
s (total) AS (SELECT sum(spent) FROM c)
SELECT least(1e7, greatest(0, coalesce(total, 0) + 5000 * sqrt(-2 * ln(1 - random())) * cos(6.283185307179586 * random()))) AS total FROM s
