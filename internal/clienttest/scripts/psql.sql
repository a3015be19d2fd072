-- PostgreSQL only: DECLARE
\set FETCH_COUNT 7
SELECT generate_series(1, 20);
SELECT 1/(10 - i) FROM generate_series(1, 20) i;
\unset FETCH_COUNT
-- end
SELECT 1 AS one, 'x'::text AS two \gdesc
SELECT r, c, r * c FROM generate_series(1, 3) r, generate_series(1, 3) c \crosstabview
SELECT 'SELECT ' || i FROM generate_series(1, 3) i \gexec
SELECT 42 AS answer \gset
SELECT :answer;
-- PostgreSQL only: sequences
CREATE SEQUENCE w;
\t on
SELECT 6 / (4 - nextval('w')) \watch 0.01
\t off
-- end
\set ON_ERROR_ROLLBACK on
BEGIN; SELECT 1; SELECT 1/0; SELECT 2; COMMIT;
-- PostgreSQL only: several statements in a query, other encodings, the catalog
SELECT 1 \; SELECT 2 \; SELECT 3;
BEGIN \; SELECT 4 \; ROLLBACK AND CHAIN \; SELECT 5; ROLLBACK;
\set SHOW_ALL_RESULTS off
SELECT 6 \; SELECT 7;
\encoding LATIN1
SELECT 'é';
\encoding UTF8
\d w
DROP SEQUENCE w;
-- end
