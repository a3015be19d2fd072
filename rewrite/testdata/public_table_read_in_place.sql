SELECT count(*) FROM transactions JOIN stores ON stores.id = transactions.store_id
