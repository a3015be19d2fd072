SELECT count(*) FROM ref.users r JOIN users u USING (id)
