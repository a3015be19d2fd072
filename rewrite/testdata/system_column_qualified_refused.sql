SELECT t.ctid FROM transactions t
