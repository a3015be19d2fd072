WITH n (store, users) AS (SELECT store_id, count(DISTINCT user_id) FROM transactions GROUP BY store_id),
k (store) AS (SELECT store FROM n WHERE users + 3 * sqrt(-2 * ln(1 - random())) * cos(6.283185307179586 * random()) > 40),
s (store, total) AS (SELECT store_id, sum(spent) FROM transactions GROUP BY store_id)
SELECT k.store, s.total + 5000 * sqrt(-2 * ln(1 - random())) * cos(6.283185307179586 * random()) AS total FROM k JOIN s ON s.store = k.store
