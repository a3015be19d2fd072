SELECT private.t.x FROM transactions
