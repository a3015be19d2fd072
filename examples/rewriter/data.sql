CREATE TABLE customers AS SELECT g AS id, CASE WHEN g % 2 = 0 THEN 'north' ELSE 'south' END AS region FROM generate_series(1, 100) g;
ALTER TABLE customers ADD PRIMARY KEY (id);
CREATE TABLE orders AS SELECT g AS id, CASE WHEN g <= 400 THEN 2 * (g % 50) + 1 ELSE 100 END AS customer, 20.0::float8 AS spent FROM generate_series(1, 500) g;
ALTER TABLE orders ADD PRIMARY KEY (id), ADD FOREIGN KEY (customer) REFERENCES customers;
