-- The same rows wherever it runs: 500 users, 20 visits each.
CREATE TABLE users (id int PRIMARY KEY, income int NOT NULL);
INSERT INTO users SELECT id, 20000 + id * 7919 % 60000 FROM generate_series(1, 500) AS id;
CREATE TABLE visits (id int PRIMARY KEY, user_id int NOT NULL REFERENCES users (id), store int NOT NULL);
INSERT INTO visits SELECT n, 1 + n % 500, n / 500 FROM generate_series(0, 9999) AS n;
CREATE INDEX ON visits (user_id);
