SELECT a.b.c.d.e FROM transactions
