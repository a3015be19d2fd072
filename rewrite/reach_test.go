package rewrite_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// waysToLeak has one of every object through which a statement may run the DP function noisy on the protected table
// users without naming either. noisy counts its calls, also in transactions that are rolled back.
const waysToLeak = `
	CREATE TABLE users (id int PRIMARY KEY, age int); INSERT INTO users SELECT i, i FROM generate_series(1, 5) i;
	CREATE TABLE stores (id int, v float8); INSERT INTO stores VALUES (1, 1), (2, 2);
	CREATE SEQUENCE calls;
	CREATE FUNCTION noisy(n bigint, e float8) RETURNS float8 LANGUAGE plpgsql AS 'BEGIN PERFORM nextval(''public.calls''); RETURN n; END';
	CREATE FUNCTION leak() RETURNS float8 LANGUAGE sql AS 'SELECT public.noisy(count(*), 0.3) FROM public.users';
	CREATE FUNCTION leak(float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN public.leak(); END';
	CREATE FUNCTION leak_stable() RETURNS float8 LANGUAGE plpgsql STABLE AS 'BEGIN RETURN public.leak(1); END';
	CREATE FUNCTION leak(text) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 1.0::float8';
	CREATE FUNCTION inlined() RETURNS float8 LANGUAGE sql AS 'SELECT public.leak(1.0::float8)';
	CREATE FUNCTION total() RETURNS float8 LANGUAGE sql AS 'SELECT sum(v) FROM public.stores';
	CREATE FUNCTION runs(t text) RETURNS void LANGUAGE plpgsql AS 'BEGIN EXECUTE t; END';
	CREATE PROCEDURE leaks() LANGUAGE plpgsql AS 'BEGIN PERFORM public.leak(); END';
	CREATE PROCEDURE adds() LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.by_default(k) VALUES (1); END';
	CREATE PROCEDURE adds_plainly() LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.sink VALUES (1, 1); END';
	CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.leak(); RETURN NEW; END';
	CREATE FUNCTION fires_plainly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.total(); RETURN NEW; END';
	CREATE TABLE sink (k int, v float8);
	CREATE TABLE by_default (k int, v float8 DEFAULT leak(), w text DEFAULT 'x');
	CREATE TABLE before_insert (k int, v float8); CREATE TRIGGER t BEFORE INSERT ON before_insert FOR EACH ROW EXECUTE FUNCTION fires();
	CREATE TABLE after_delete (k int, v float8); INSERT INTO after_delete VALUES (1, 1); CREATE TRIGGER t AFTER DELETE ON after_delete FOR EACH STATEMENT EXECUTE FUNCTION fires();
	CREATE TABLE update_of (k int, v float8); INSERT INTO update_of VALUES (1, 1); CREATE TRIGGER t BEFORE UPDATE OF v ON update_of FOR EACH ROW EXECUTE FUNCTION fires();
	CREATE TABLE truncated (k int); CREATE TRIGGER t BEFORE TRUNCATE ON truncated EXECUTE FUNCTION fires();
	CREATE TABLE deferred (k int); CREATE CONSTRAINT TRIGGER t AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fires();
	CREATE TABLE disabled (k int); CREATE TRIGGER t BEFORE INSERT ON disabled FOR EACH ROW EXECUTE FUNCTION fires(); ALTER TABLE disabled DISABLE TRIGGER t;
	CREATE TABLE plain_trigger (k int); CREATE TRIGGER t BEFORE INSERT ON plain_trigger FOR EACH ROW EXECUTE FUNCTION fires_plainly();
	CREATE VIEW instead AS SELECT 1 AS k; CREATE TRIGGER t INSTEAD OF INSERT ON instead FOR EACH ROW EXECUTE FUNCTION fires();
	CREATE VIEW over_default AS SELECT k FROM by_default;
	CREATE TABLE generated (k float8, v float8 GENERATED ALWAYS AS (leak(k)) STORED);
	CREATE TABLE checked (k int, v float8 CHECK (v > leak() - 100)); INSERT INTO checked VALUES (1, 1); 
	CREATE TABLE unvalidated (v float8); INSERT INTO unvalidated VALUES (1); ALTER TABLE unvalidated ADD CONSTRAINT c CHECK (v > leak() - 100) NOT VALID;
	CREATE TABLE indexed (v float8); CREATE INDEX ON indexed (leak(v)); INSERT INTO indexed VALUES (1); 
	CREATE TABLE parted (v float8) PARTITION BY LIST (leak(v)); CREATE TABLE part PARTITION OF parted DEFAULT;
	CREATE TABLE children (k int, v float8) PARTITION BY LIST (k); CREATE TABLE child PARTITION OF children DEFAULT; ALTER TABLE child ALTER v SET DEFAULT leak();
		CREATE TRIGGER t BEFORE INSERT ON child FOR EACH ROW EXECUTE FUNCTION fires();
	CREATE TABLE ruled (k int); CREATE RULE r AS ON INSERT TO ruled DO ALSO SELECT leak();
	CREATE TABLE ruled_twice (k int); CREATE RULE r AS ON DELETE TO ruled_twice DO INSTEAD INSERT INTO by_default(k) VALUES (1);
	CREATE TABLE parents (id int PRIMARY KEY); INSERT INTO parents VALUES (1);
	CREATE TABLE cascaded (id int REFERENCES parents ON DELETE CASCADE); INSERT INTO cascaded VALUES (1); CREATE TRIGGER t BEFORE DELETE ON cascaded FOR EACH ROW EXECUTE FUNCTION fires();
	CREATE TABLE refers (id int REFERENCES users);
	CREATE TABLE secured (k int); INSERT INTO secured VALUES (1); ALTER TABLE secured ENABLE ROW LEVEL SECURITY; ALTER TABLE secured FORCE ROW LEVEL SECURITY;
		CREATE POLICY p ON secured USING (k > 0); CREATE POLICY q ON secured FOR DELETE USING (leak() > 0);
	CREATE DOMAIN leaking AS float8 CHECK (VALUE > leak() - 100); CREATE DOMAIN leaking_default AS float8 DEFAULT leak(); CREATE DOMAIN plain AS float8 CHECK (VALUE > 0);
	CREATE TABLE domains (k int, v leaking); CREATE TABLE domain_defaults (k int, v leaking_default); CREATE TABLE plain_domains (v plain);
	CREATE FUNCTION takes(d leaking) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
	CREATE TYPE wrapped AS (v int); CREATE FUNCTION unwrap(wrapped) RETURNS float8 LANGUAGE sql AS 'SELECT public.leak() + ($1).v'; CREATE CAST (wrapped AS float8) WITH FUNCTION unwrap(wrapped) AS ASSIGNMENT;
	CREATE FUNCTION op_leak(int, int) RETURNS float8 LANGUAGE sql AS 'SELECT public.leak() + $1'; CREATE OPERATOR @~@ (LEFTARG = int, RIGHTARG = int, FUNCTION = op_leak);
	CREATE FUNCTION op_plain(int, int) RETURNS float8 LANGUAGE sql AS 'SELECT 1.0::float8'; CREATE OPERATOR @~~@ (LEFTARG = int, RIGHTARG = int, FUNCTION = op_plain);
	CREATE FUNCTION by_operator() RETURNS float8 LANGUAGE sql AS 'SELECT 1 @~@ 2';
	CREATE FUNCTION adds_up(float8, int) RETURNS float8 LANGUAGE sql AS 'SELECT $1 + public.leak()'; CREATE AGGREGATE leaky_sum(int) (SFUNC = adds_up, STYPE = float8, INITCOND = '0');
	CREATE FUNCTION atomic() RETURNS float8 LANGUAGE sql BEGIN ATOMIC SELECT leak(); END;
	CREATE FUNCTION with_default(a float8 DEFAULT leak()) RETURNS float8 LANGUAGE sql AS 'SELECT $1';
	CREATE FUNCTION row_leak(stores) RETURNS float8 LANGUAGE sql AS 'SELECT public.leak()';
	CREATE TABLE xml_default (k int, v text DEFAULT query_to_xml('SELECT noisy(count(*), 0.3) FROM users', true, true, '')::text);
	CREATE VIEW vleak AS SELECT leak() AS v;
	CREATE VIEW vxml AS SELECT query_to_xml('SELECT noisy(count(*), 0.3) FROM users', true, true, '')::text AS x;
	CREATE MATERIALIZED VIEW kept AS SELECT leak() AS v; CREATE UNIQUE INDEX ON kept (v);
	CREATE FUNCTION compares(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM public.leak(); RETURN CASE WHEN $1 < $2 THEN -1 WHEN $1 > $2 THEN 1 ELSE 0 END; END';
	CREATE OPERATOR CLASS leak_ops FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 compares(int, int);
	CREATE TABLE sorted (k int); INSERT INTO sorted VALUES (2), (1); CREATE INDEX ON sorted (k leak_ops);
	CREATE SCHEMA quiet; CREATE TABLE quiet.t (v int);
	CREATE FUNCTION leaks_tsquery() RETURNS text LANGUAGE sql AS $$ SELECT 'SELECT ''a''::tsquery, ''b''::tsquery FROM vleak' $$;
`

// reached is one statement, and what is said of it.
type reached struct {
	sql    string
	params []string
	want   rewrite.Reason // "" = it has a plan
	quiet  bool           // it does not run noisy, although it is refused
	copied string         // the data of a COPY FROM
	alone  bool           // not in a transaction
	before string         // runs before it
	tag    string         // its command tag, if it matters
}

const indirect, plain, planned = reasons.IndirectUse, reasons.NotSelect, reasons.Explain

// reachedStatements are statements with their verdicts. Where noisy runs, the verdict is a plan or one that counts
// against coverage.
func reachedStatements() []reached {
	none := reasons.NoProtectedTable
	return []reached{
		// statements that hold the query
		{sql: `DO $$ BEGIN RAISE NOTICE 'v=%', (SELECT noisy(count(*), 0.33) FROM users); END $$`, want: indirect},
		{sql: `DO $$ BEGIN PERFORM set_config('a.b', leak()::text, false); END $$`, want: indirect},
		{sql: `DO LANGUAGE plpgsql 'BEGIN EXECUTE ''SELECT noi''||''sy(count(*), 0.3) FROM users''; END'`, want: indirect},
		{sql: `DO $$ DECLARE n bigint; BEGIN SELECT count(*) INTO n FROM users; CREATE TEMP TABLE x AS SELECT noisy(n, 0.3) AS v; END $$`, want: indirect},
		{sql: `DO $$ DECLARE n int; BEGIN SELECT count(*) INTO n FROM users; RAISE NOTICE 'n=%', n; END $$`, want: plain},
		{sql: `DO $$ BEGIN EXECUTE format('CREATE TABLE %I (k int)', 'users_2027'); END $$`, want: plain},
		{sql: `UPDATE stores SET v = (SELECT noisy(count(*), 0.34) FROM users) RETURNING v`, want: indirect},
		{sql: `UPDATE stores SET v = 1 WHERE 150 < (SELECT noisy(count(*), 0.3) FROM users)`, want: indirect},
		{sql: `UPDATE stores SET v = leak()`, want: indirect},
		{sql: `UPDATE users SET age = age + 1 WHERE id = 1 RETURNING age`, want: plain},
		{sql: `DELETE FROM stores USING users u WHERE v < leak() RETURNING u.id`, want: indirect},
		{sql: `DELETE FROM users WHERE id = 9`, want: plain},
		{sql: `MERGE INTO stores s USING (SELECT noisy(count(*), 0.3) AS v FROM users) u ON s.id = 1 WHEN MATCHED THEN UPDATE SET v = u.v`, want: indirect},
		{sql: `MERGE INTO stores s USING (SELECT 1 AS id) u ON s.id = u.id WHEN MATCHED THEN UPDATE SET v = 0`, want: plain},
		{sql: `WITH a AS (SELECT noisy(count(*), 0.3) AS v FROM users) UPDATE stores SET v = a.v FROM a`, want: indirect},
		{sql: `CALL leaks()`, want: indirect},
		{sql: `CALL adds()`, want: indirect},
		{sql: `CALL adds_plainly()`, want: plain},
		{sql: `INSERT INTO sink VALUES (2, leak())`, want: reasons.NoCopy},
		{sql: `INSERT INTO sink VALUES (2, 0) RETURNING leak()`, want: indirect},
		{sql: `INSERT INTO sink VALUES (9, 1) RETURNING v`, want: none},
		{sql: `INSERT INTO users VALUES (9, 1) RETURNING id`, want: none},
		{sql: `INSERT INTO parents VALUES (1) ON CONFLICT (id) DO UPDATE SET id = leak()`, want: indirect},
		{sql: `COPY stores FROM STDIN WHERE v < leak()`, want: indirect, copied: "3\t3\n"},
		{sql: `COPY stores FROM STDIN`, want: plain, copied: "3\t3\n"},
		{sql: `SELECT query_to_xml('SELECT noisy(count(*), 0.35) FROM users', true, true, '')`, want: indirect},
		{sql: `SELECT query_to_xml($1, true, true, '')`, params: []string{"SELECT noisy(count(*), 0.35) FROM users"}, want: indirect},
		{sql: `SELECT query_to_xml('SELECT ' || 'noi' || 'sy(count(*), 0.35) FROM users', true, true, '')`, want: indirect},
		{sql: `SELECT query_to_xml_and_xmlschema('SELECT * FROM vleak', true, true, '')`, want: indirect},
		{sql: `SELECT query_to_xmlschema('SELECT noisy(count(*), 0.35) FROM users', true, true, '')`, want: indirect, quiet: true},
		{sql: `SELECT query_to_xml(t, true, true, '') FROM (SELECT 'SELECT * FROM vleak'::text AS t) x`, want: indirect},
		{sql: `SELECT cursor_to_xml('c', 1, true, true, '')`, before: `DECLARE c CURSOR FOR SELECT leak()`, want: indirect},
		{sql: `SELECT query_to_xml('SELECT count(*) FROM stores', true, true, '')`, want: none},
		{sql: `SELECT table_to_xml('vleak', true, true, '')`, want: indirect},
		{sql: `SELECT table_to_xml('public.stores', true, true, '')`, want: none},
		{sql: `SELECT schema_to_xml('public', true, true, '')`, want: indirect},
		{sql: `SELECT schema_to_xml('quiet', true, true, '')`, want: none},
		{sql: `SELECT database_to_xml(true, true, '')`, want: indirect},
		{sql: `SELECT * FROM ts_stat('SELECT leak()::text::tsvector')`, want: indirect},
		{sql: `SELECT * FROM ts_stat('SELECT ''a''::tsvector')`, want: none},
		{sql: `SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, leak()::text::tsquery')`, want: indirect},
		{sql: `SELECT * FROM crosstab('SELECT 1, 2, leak() ORDER BY 1') AS c (a int, b float8)`, want: indirect},
		{sql: `SELECT * FROM crosstab('SELECT id, 1, v FROM stores ORDER BY 1') AS c (a int, b float8)`, want: none},
		{sql: `SELECT * FROM dblink('dbname=here', 'SELECT noisy(count(*), 0.3) FROM users') AS x (v float8)`, want: reasons.SideEffects, quiet: true},
		{sql: `SELECT runs('SELECT noisy(count(*), 0.3) FROM users')`, want: indirect},
		{sql: `SELECT runs('SELECT 1')`, want: none},
		{sql: `SELECT upper('SELECT noisy(count(*), 0.3) FROM users')`, want: none},

		// beside a query
		{sql: `INSERT INTO sink SELECT 3, noisy(count(*), 0.11) FROM users`},
		{sql: `INSERT INTO sink SELECT 3, noisy(count(*), 0.11) FROM users RETURNING v`},
		{sql: `INSERT INTO sink SELECT 3, noisy(count(*), 0.11) FROM users RETURNING v, leak()`, want: indirect},
		{sql: `INSERT INTO parents SELECT noisy(count(*), 0.11) FROM users ON CONFLICT (id) DO UPDATE SET id = leak()`, want: indirect, quiet: false},
		{sql: `INSERT INTO by_default(k) SELECT noisy(count(*), 0.11) FROM users`, want: indirect},
		{sql: `INSERT INTO by_default(k, v) SELECT 1, noisy(count(*), 0.11) FROM users`},
		{sql: `EXPLAIN ANALYZE INSERT INTO before_insert SELECT 1, noisy(count(*), 0.11) FROM users`, want: indirect},

		// what belongs to a relation
		{sql: `INSERT INTO by_default(k) VALUES (1) RETURNING v`, want: indirect},
		{sql: `INSERT INTO by_default VALUES (1)`, want: indirect},
		{sql: `INSERT INTO by_default VALUES (1, DEFAULT)`, want: indirect},
		{sql: `INSERT INTO by_default DEFAULT VALUES`, want: indirect},
		{sql: `INSERT INTO by_default(k, v) VALUES (1, 2) RETURNING v`, want: none},
		{sql: `INSERT INTO by_default VALUES (1, 2)`, want: none},
		{sql: `UPDATE by_default SET k = 2`, want: plain},
		{sql: `UPDATE by_default SET v = DEFAULT`, before: `INSERT INTO by_default VALUES (1, 1)`, want: indirect},
		{sql: `COPY by_default (k) FROM STDIN`, want: indirect, copied: "1\n"},
		{sql: `COPY by_default FROM STDIN`, want: plain, copied: "1\t2\tx\n"},
		{sql: `INSERT INTO over_default VALUES (1)`, want: indirect},
		{sql: `INSERT INTO before_insert VALUES (1, 1)`, want: indirect},
		{sql: `DELETE FROM before_insert`, want: plain},
		{sql: `DELETE FROM after_delete`, want: indirect},
		{sql: `INSERT INTO after_delete VALUES (1, 1)`, want: none},
		{sql: `UPDATE update_of SET v = 1`, want: indirect},
		{sql: `UPDATE update_of SET k = 1`, want: plain},
		{sql: `TRUNCATE truncated`, want: indirect},
		{sql: `INSERT INTO deferred VALUES (1)`, want: indirect},
		{sql: `INSERT INTO disabled VALUES (1)`, want: none},
		{sql: `INSERT INTO plain_trigger VALUES (1)`, want: none},
		{sql: `INSERT INTO instead VALUES (1)`, want: indirect},
		{sql: `INSERT INTO generated VALUES (1)`, want: indirect},
		{sql: `UPDATE checked SET v = 2`, want: indirect},
		{sql: `SELECT v FROM checked`, want: none},
		{sql: `INSERT INTO indexed VALUES (1)`, want: indirect},
		{sql: `INSERT INTO parted VALUES (1)`, want: indirect},
		{sql: `INSERT INTO children VALUES (1, 1)`, want: indirect},
		{sql: `INSERT INTO ruled VALUES (1)`, want: indirect},
		{sql: `DELETE FROM ruled_twice`, want: indirect, quiet: true},
		{sql: `DELETE FROM parents WHERE id = 1`, want: indirect},
		{sql: `INSERT INTO refers VALUES (1)`, want: none},
		{sql: `SELECT k FROM secured`, want: none},
		{sql: `INSERT INTO domains VALUES (1, 1)`, want: indirect},
		{sql: `INSERT INTO domain_defaults(k) VALUES (1)`, want: indirect},
		{sql: `INSERT INTO domain_defaults VALUES (1, 1)`, want: none},
		{sql: `INSERT INTO plain_domains VALUES (1)`, want: none},
		{sql: `INSERT INTO xml_default(k) VALUES (1) RETURNING v`, want: indirect},

		// expressions
		{sql: `SELECT 1 @~@ 2`, want: indirect},
		{sql: `SELECT 1 OPERATOR(public.@~@) 2`, want: indirect},
		{sql: `SELECT 1 @~~@ 2`, want: none},
		{sql: `SELECT 1 + 2`, want: none},
		{sql: `SELECT by_operator()`, want: reasons.NoCopy},
		{sql: `SELECT leaky_sum(id) FROM stores`, want: reasons.NoCopy},
		{sql: `SELECT atomic()`, want: reasons.NoCopy},
		{sql: `SELECT with_default()`, want: reasons.NoCopy},
		{sql: `SELECT leak('a'::text)`, want: reasons.NoCopy, quiet: true},
		{sql: `SELECT s.row_leak FROM stores s`, want: indirect},
		{sql: `SELECT 1::float8::leaking`, want: indirect},
		{sql: `SELECT takes(1)`, want: reasons.NoCopy},
		{sql: `SELECT 1::float8::plain`, want: none},
		{sql: `SELECT ROW(1)::wrapped::float8`, want: indirect},
		{sql: `SELECT id::float8 FROM stores`, want: none},
		{sql: `INSERT INTO sink(v) SELECT ROW(1)::wrapped`, want: indirect},
		{sql: `SELECT * FROM vxml`, want: indirect},
		{sql: `SELECT v FROM kept`, want: none},
		{sql: `SELECT k FROM sorted WHERE k = 1`, want: indirect, quiet: true}, // if the planner chooses the index
		{sql: `INSERT INTO sorted VALUES (3)`, want: indirect},
		{sql: `VALUES (1 @~@ 2)`, want: indirect},

		// definitions: harmless until used, unless they compute something
		{sql: `CREATE FUNCTION f() RETURNS float8 LANGUAGE sql AS 'SELECT noisy(count(*), 0.3) FROM users'`, want: plain},
		{sql: `CREATE RULE r2 AS ON INSERT TO sink DO ALSO SELECT leak()`, want: plain},
		{sql: `CREATE TRIGGER t2 BEFORE INSERT ON sink FOR EACH ROW EXECUTE FUNCTION fires()`, want: plain},
		{sql: `CREATE VIEW v2 AS SELECT noisy(count(*), 0.3) FROM users`, want: plain},
		{sql: `CREATE TABLE t2 (v float8 DEFAULT leak() CHECK (v > leak()))`, want: plain},
		{sql: `ALTER TABLE stores ALTER v SET DEFAULT leak()`, want: plain},
		{sql: `ALTER TABLE stores ADD COLUMN w float8 DEFAULT leak()`, want: indirect},
		{sql: `ALTER TABLE stores ADD COLUMN w float8 DEFAULT 1`, want: plain},
		{sql: `ALTER TABLE stores ADD COLUMN w leaking_default`, want: indirect},
		{sql: `ALTER TABLE stores ADD COLUMN w plain`, want: plain},
		{sql: `ALTER TABLE stores ALTER v TYPE text USING leak()::text`, want: indirect},
		{sql: `ALTER TABLE stores ADD CHECK (v > leak() - 100)`, want: indirect},
		{sql: `ALTER TABLE stores ADD CHECK (v > leak() - 100) NOT VALID`, want: plain},
		{sql: `ALTER TABLE unvalidated VALIDATE CONSTRAINT c`, want: indirect},
		{sql: `ALTER TABLE indexed ALTER v TYPE float4`, want: indirect},
		{sql: `ALTER TABLE indexed OWNER TO CURRENT_USER`, want: plain},
		{sql: `CREATE INDEX ON stores (leak(v))`, want: indirect},
		{sql: `CREATE INDEX ON stores (v)`, want: plain},
		{sql: `REINDEX TABLE indexed`, want: indirect},
		{sql: `ANALYZE indexed`, want: indirect},
		{sql: `ANALYZE stores`, want: plain},
		{sql: `VACUUM FULL indexed`, want: indirect, alone: true},
		{sql: `CREATE TABLE bound PARTITION OF children FOR VALUES IN ((leak(1)::int))`, want: indirect},
		{sql: `ALTER DOMAIN plain ADD CHECK (VALUE > leak() - 100)`, before: `INSERT INTO plain_domains VALUES (1)`, want: indirect},
		{sql: `REFRESH MATERIALIZED VIEW kept`, want: reasons.NoCopy},
		{sql: `SET work_mem = '8MB'`, want: plain},
		{sql: `LISTEN users`, want: plain},

		// planned and not executed
		{sql: `EXPLAIN VERBOSE SELECT leak(1.0::float8)`, want: indirect},
		{sql: `EXPLAIN SELECT 1 WHERE leak(2.0::float8) > 3`, want: indirect},
		{sql: `EXPLAIN SELECT * FROM stores WHERE v < leak_stable()`, want: indirect},
		{sql: `EXPLAIN SELECT inlined()`, want: indirect},
		{sql: `EXPLAIN SELECT leak(v) FROM stores`, want: planned},
		{sql: `EXPLAIN SELECT leak()`, want: planned},
		{sql: `EXPLAIN SELECT noisy(count(*), 0.3) FROM users`, want: planned},
		{sql: `EXPLAIN VERBOSE SELECT count(*) FROM sink`, want: planned},
		{sql: `EXPLAIN UPDATE stores SET v = leak()`, want: planned},
		{sql: `EXPLAIN ANALYZE UPDATE stores SET v = leak()`, want: indirect},
		{sql: `PREPARE p AS SELECT leak(1.0::float8)`, want: indirect, quiet: true},
		{sql: `PREPARE q AS SELECT leak()`, want: plain},
	}
}

// TestReach: whatever its form, a statement that runs a DP function on a protected table on a real server has a plan or
// counts against coverage, and one that does not is no DP query.
func TestReach(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	conn := connect(t, dsn)
	run(t, conn, waysToLeak)
	extended := conn.Exec(t.Context(), "CREATE EXTENSION tablefunc").Close() == nil
	c, err := read.Catalog(t.Context(), dsn, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	o := rewrite.Options{
		Protected: []rewrite.Table{table("public", "users")}, Source: c,
		Claims: rewrite.ClaimRules{Signatures: []rewrite.Signature{{Function: "noisy", Epsilon: -1}}},
	}
	r := newRewriter(t, o)
	for _, s := range reachedStatements() {
		if strings.Contains(s.sql, "crosstab") && !extended {
			continue
		}
		check(t, r, conn, s)
	}
	testReachClaims(t, r)
	testReachNames(t, o)
	testReachWithoutCatalog(t, o)

	// event triggers fire at commands, whatever they define
	run(t, conn, `CREATE FUNCTION at_commands() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.leak(); END';
		CREATE EVENT TRIGGER e ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS') EXECUTE FUNCTION at_commands()`)
	if o.Source, err = read.Catalog(t.Context(), dsn, time.Minute); err != nil {
		t.Fatal(err)
	}
	r = newRewriter(t, o)
	for _, s := range []reached{
		{sql: "CREATE TABLE t (v int)", want: indirect, tag: "CREATE TABLE"},
		{sql: "CREATE TABLE t AS SELECT noisy(count(*), 0.1) FROM users", want: indirect, tag: "SELECT 1"},
		{sql: "SELECT 1 AS v INTO t", want: reasons.NoProtectedTable, tag: "SELECT 1"},
		{sql: "CREATE VIEW t AS SELECT 1", want: plain, tag: "CREATE VIEW"},
		{sql: "CREATE ROLE reach_nobody", want: plain, tag: "CREATE ROLE"},
		{sql: "DELETE FROM stores", want: plain, tag: "DELETE 2"},
	} {
		check(t, r, conn, s)
	}
}

// testReachWithoutCatalog: by the names in the text alone, and by those of the shadow database.
func testReachWithoutCatalog(t *testing.T, o rewrite.Options) {
	t.Helper()
	shadow := o
	shadow.Source, shadow.Shadow = nil, o.Source
	known := newRewriter(t, shadow)
	o.Source = nil
	unknown := newRewriter(t, o)
	for _, s := range reachedStatements() {
		is, err := verdictOf(t, known, s)
		if want := reasons.NotDP(s.want); is != "" && reasons.NotDP(is) != want && s.want != "" {
			t.Errorf("by the shadow database: %s: %v; want %q", s.sql, err, s.want)
		}
		if is, err = verdictOf(t, unknown, s); s.want != "" && strings.Contains(s.sql, "noisy") && strings.Contains(s.sql, "users") && s.want == indirect && !strings.Contains(s.sql, "INTO by_default") && !strings.Contains(s.sql, "INTO before_insert") && (is == "" || reasons.NotDP(is)) {
			t.Errorf("without a catalog: %s: %v; want %q", s.sql, err, s.want)
		}
	}
}

// verdictOf returns the reason for which a statement is refused.
func verdictOf(t *testing.T, r *rewrite.Rewriter, s reached) (rewrite.Reason, error) {
	t.Helper()
	q := capture.Query{SQL: s.sql, Tag: s.tag}
	for _, p := range s.params {
		q.Params = append(q.Params, capture.Param{OID: 25, Value: []byte(p)})
	}
	_, err := r.Analyze(q)
	var refused *rewrite.UnsupportedError
	if errors.As(err, &refused) {
		return refused.Reason, err
	}
	return "", err
}

// check compares the verdict on a statement with what is wanted, and with what the server does.
func check(t *testing.T, r *rewrite.Rewriter, conn *pgconn.PgConn, s reached) {
	t.Helper()
	if got, err := verdictOf(t, r, s); got != s.want {
		t.Errorf("%s: %v; want %q", s.sql, err, s.want)
	}
	if ran := runsNoisy(t, conn, s); ran != (s.want == "" || !reasons.NotDP(s.want)) && !s.quiet {
		t.Errorf("%s: runs the DP function: %t", s.sql, ran)
	}
}

// testReachClaims: what a refused statement claims is known if it calls its DP functions itself, with constants.
func testReachClaims(t *testing.T, r *rewrite.Rewriter) {
	t.Helper()
	for sql, want := range map[string]float64{
		"UPDATE stores SET v = (SELECT noisy(count(*), 0.34) FROM users) RETURNING v":                           0.34,
		"DO $$ BEGIN PERFORM noisy(count(*), 0.25) FROM users; PERFORM noisy(count(*), 0.5) FROM users; END $$": 0.75,
		"SELECT query_to_xml('SELECT noisy(count(*), 0.5) FROM users', true, true, '')":                         0.5,
		"DO $$ DECLARE e float8 := 1; BEGIN PERFORM noisy(count(*), e) FROM users; END $$":                      0,
		"UPDATE stores SET v = (SELECT noisy(count(*), 0.25) FROM users) + leak()":                              0,
		"CALL leaks()": 0,
		"INSERT INTO sink SELECT 3, noisy(count(*), 0.11) FROM users RETURNING noisy(k, 0.5)": 0,
	} {
		_, err := r.Analyze(capture.Query{SQL: sql})
		var refused *rewrite.UnsupportedError
		if !errors.As(err, &refused) || refused.Reason != indirect || (refused.Claim == nil) != (want == 0) || want > 0 && refused.Claim.Epsilon != want {
			t.Errorf("%s: %v, %+v; want a claim of %g", sql, err, refused, want)
		}
	}
}

// testReachNames: the relay passes on every statement that runs a DP function, by the names that it holds.
func testReachNames(t *testing.T, o rewrite.Options) {
	t.Helper()
	source := *o.Source
	o.Source, source.Casts = &source, nil // one that reaches both lets everything pass
	source.Types = slices.DeleteFunc(slices.Clone(source.Types), func(t catalog.Type) bool { return t.Schema == "pg_catalog" })
	names, ok := newRewriter(t, o).Names()
	if !ok || len(names) == 0 {
		t.Fatalf("names %q, %t", names, ok)
	}
	mentions := capture.Mentions(names)
	for _, s := range reachedStatements() {
		if s.want != "" && reasons.NotDP(s.want) || strings.Contains(s.sql, "wrapped") {
			continue
		}
		if !mentions(s.sql) {
			t.Errorf("%s holds none of %q", s.sql, names)
		}
	}
	for _, sql := range []string{"INSERT INTO sink VALUES (9, 1) RETURNING v", "SELECT 1 + 2", "SELECT 1 @~~@ 2", "INSERT INTO plain_trigger VALUES (1)", "CREATE TABLE t (v int)"} {
		if mentions(sql) {
			t.Errorf("%s holds one of %q", sql, names)
		}
	}
}

// runsNoisy reports whether a statement calls noisy.
func runsNoisy(t *testing.T, conn *pgconn.PgConn, s reached) bool {
	t.Helper()
	value := func() (v string) {
		for k := range column(t, conn, "SELECT last_value::text || is_called FROM calls") {
			v = k
		}
		return v
	}
	if !s.alone {
		run(t, conn, "BEGIN")
	}
	if s.before != "" {
		run(t, conn, s.before)
	}
	before := value()
	var err error
	switch {
	case s.copied != "":
		_, err = conn.CopyFrom(t.Context(), strings.NewReader(s.copied), s.sql)
	case len(s.params) > 0:
		params := make([][]byte, len(s.params))
		for i, p := range s.params {
			params[i] = []byte(p)
		}
		err = conn.ExecParams(t.Context(), s.sql, params, []uint32{25}, nil, nil).Read().Err
	default:
		err = conn.Exec(t.Context(), s.sql).Close()
	}
	if err != nil {
		t.Logf("%s: %v", s.sql, err)
	}
	if !s.alone && err == nil {
		run(t, conn, "SET CONSTRAINTS ALL IMMEDIATE")
	}
	if !s.alone {
		run(t, conn, "ROLLBACK")
	}
	return value() != before
}
