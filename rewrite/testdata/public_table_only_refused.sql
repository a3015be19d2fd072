SELECT * FROM stores
