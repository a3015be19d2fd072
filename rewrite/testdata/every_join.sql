SELECT 1 FROM users a JOIN transactions b ON a.id = b.user_id LEFT JOIN users c USING (id) NATURAL JOIN stores RIGHT JOIN (transactions x CROSS JOIN users y) ON true FULL JOIN users z ON z.id = x.id
