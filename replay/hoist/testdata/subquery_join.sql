SELECT random() FROM (SELECT id, sum(x) AS s FROM d0.t GROUP BY id) AS a JOIN (SELECT id, random() AS r FROM d0.u) AS b ON a.id = b.id
