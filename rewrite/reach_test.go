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
		if strings.Contains(s.sql, "FROM kept") { // that it holds answers is known from the source's catalog alone
			continue
		}
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
	if !ok || len(names.Reaching) == 0 {
		t.Fatalf("names %q, %t", names.Reaching, ok)
	}
	names.Known = nil
	filter := capture.NewFilter(names)
	for _, s := range reachedStatements() {
		if s.want != "" && reasons.NotDP(s.want) || strings.Contains(s.sql, "wrapped") {
			continue
		}
		if filter.Sight(s.sql) != capture.Reaching {
			t.Errorf("%s holds none of %q", s.sql, names.Reaching)
		}
	}
	for _, sql := range []string{"INSERT INTO sink VALUES (9, 1) RETURNING v", "SELECT 1 + 2", "SELECT 1 @~~@ 2", "INSERT INTO plain_trigger VALUES (1)", "CREATE TABLE t (v int)"} {
		if filter.Sight(sql) == capture.Reaching {
			t.Errorf("%s holds one of %q", sql, names.Reaching)
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
