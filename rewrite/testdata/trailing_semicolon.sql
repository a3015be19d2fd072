SELECT count(*) FROM users ;; -- end
