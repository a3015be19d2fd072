SELECT count(*) FROM d0.u LEFT JOIN (SELECT t.x, v.rate FROM d0.t JOIN d0.v ON v.id = t.uid) AS q ON random() < q.rate
