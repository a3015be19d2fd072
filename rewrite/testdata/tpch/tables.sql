-- Tables of the shape of TPC-H and pgbench, small; {n} tells the neighbours apart. {s} is the schema.
CREATE TABLE {s}.customer (c_custkey int, c_name text, c_address text, c_nationkey int, c_phone text, c_acctbal numeric, c_mktsegment text, c_comment text);
INSERT INTO {s}.customer SELECT i, 'Customer#' || i, 'street ' || i, i % 5, (10 + i % 25) || '-555-' || i, i * 37 % 900 - 100,
	(ARRAY['BUILDING', 'AUTOMOBILE', 'MACHINERY'])[1 + i % 3], 'c' || i FROM generate_series(1, {n}) i;
CREATE TABLE {s}.orders (o_orderkey int, o_custkey int, o_orderstatus char, o_totalprice numeric, o_orderdate date, o_orderpriority text, o_clerk text, o_shippriority int, o_comment text);
INSERT INTO {s}.orders SELECT i, 1 + i * 7 % {n}, (ARRAY['F', 'O', 'P'])[1 + i % 3], i * 113 % 5000, '1993-01-01'::date + i * 17 % 1500,
	(1 + i % 5) || '-P', 'clerk' || i % 3, 0, CASE i % 7 WHEN 0 THEN 'special packages requests' ELSE 'plain' END FROM generate_series(1, 300) i;
CREATE TABLE {s}.lineitem (l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity numeric, l_extendedprice numeric, l_discount numeric, l_tax numeric,
	l_returnflag char, l_linestatus char, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct text, l_shipmode text);
INSERT INTO {s}.lineitem SELECT 1 + i % 300, 1 + i * 3 % 40, 1 + i / 7 % 10, i % 4, 1 + i * 11 % 50, 100 + i * 29 % 900, (i % 11) / 100.0, (i % 9) / 100.0,
	(ARRAY['A', 'N', 'R'])[1 + i % 3], (ARRAY['F', 'O'])[1 + i % 2], d, d + i % 40 - 20, d + i % 30, 'DELIVER IN PERSON', (ARRAY['MAIL', 'SHIP', 'AIR'])[1 + i % 3]
	FROM (SELECT i, '1993-02-01'::date + i * 17 % 1500 AS d FROM generate_series(1, 1200 + {n}) i) x;
CREATE TABLE {s}.part (p_partkey int, p_name text, p_mfgr text, p_brand text, p_type text, p_size int, p_container text, p_retailprice numeric);
INSERT INTO {s}.part SELECT i, (ARRAY['green', 'red'])[1 + i % 2] || ' part', 'M' || i % 3, 'Brand#' || i % 4, (ARRAY['PROMO BRASS', 'ECONOMY STEEL', 'LARGE BRASS'])[1 + i % 3],
	1 + i % 15, (ARRAY['MED BOX', 'SM CASE'])[1 + i % 2], 900 + i FROM generate_series(1, 40) i;
CREATE TABLE {s}.supplier (s_suppkey int, s_name text, s_address text, s_nationkey int, s_phone text, s_acctbal numeric, s_comment text);
INSERT INTO {s}.supplier SELECT i, 'Supplier#' || i, 'road ' || i, i % 5, '1' || i, i * 91 % 700, CASE i WHEN 3 THEN 'Customer Complaints' ELSE '' END FROM generate_series(1, 10) i;
CREATE TABLE {s}.partsupp (ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost numeric);
INSERT INTO {s}.partsupp SELECT 1 + i % 40, 1 + i % 10, i * 13 % 800, 1 + i * 31 % 500 FROM generate_series(1, 160) i;
CREATE TABLE {s}.pgbench_accounts (aid int, bid int, abalance int, filler char(84));
INSERT INTO {s}.pgbench_accounts SELECT i, 1, i * 17 % 1000, '' FROM generate_series(1, 10 * {n}) i;
CREATE TABLE {s}.pgbench_tellers (tid int, bid int, tbalance int, filler char(84));
INSERT INTO {s}.pgbench_tellers SELECT i, 1, i, '' FROM generate_series(1, 10) i;
