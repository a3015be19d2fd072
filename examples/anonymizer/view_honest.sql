SELECT id, answer FROM survey_masked WHERE id BETWEEN 6 AND 8 ORDER BY id
