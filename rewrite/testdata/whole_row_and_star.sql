SELECT t, t.*, (t).spent, row_to_json(t) FROM transactions t
