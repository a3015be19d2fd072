SELECT id, anon.ldp_grrm(answer, 1.0, 2) AS answer FROM survey WHERE id BETWEEN 6 AND 8 ORDER BY id
