package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// auditConfig writes a configuration for the database of copies, with extra lines.
func auditConfig(t *testing.T, dsn, more string) string {
	t.Helper()
	return file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: 127.0.0.1:1}
shadow: {dsn: %q, d0: d0, d1: [d1, d2]}
privacy: {protected: [public.people]}
claims: {functions: [{name: noisy_count, epsilon: -1}], safe_functions: [noisy]}
audit: {confidence: 0.999, max_trials: 321}
%s`, dsn, more))
}

// TestAuditConfig: connection, copies, claim, confidence and budget come from the configuration, and flags override
// them.
func TestAuditConfig(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, `CREATE SCHEMA d2; CREATE TABLE d2.people AS SELECT * FROM d0.people WHERE id <> 49;
		CREATE FUNCTION noisy_count(n bigint, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT noisy(n, 10 / epsilon)'`)
	path := auditConfig(t, dsn, "")
	audit := func(args ...string) result {
		return call(t, "", append([]string{"audit", "--config", path, "-o", "json"}, args...)...)
	}
	const query = "SELECT noisy_count(count(*), 0.5) FROM people"
	r := audit("--sql", query)
	// The noise has scale 20, so the true epsilon is 0.05 against a claim of 0.5. A violation is reported with a
	// probability far below 1 - 0.999 (each of 321 pairs has a likelihood ratio of at most e^0.05).
	r.want(t, exitDone)
	report := r.object(t)
	checkContract(t, report)
	claimed, _ := report["claimed"].(map[string]any)
	trials, _ := report["trials"].(map[string]any)
	list, _ := report["neighbours"].([]any)
	if claimed["epsilon"] != 0.5 || claimed["source"] != "argument" || trials["d0"] != 321.0 || report["confidence"] != 0.999 && len(list) != 2 {
		t.Errorf("claimed %v, trials %v, confidence %v, neighbours %v", claimed, trials, report["confidence"], list)
	}
	r = audit("--sql", query, "--epsilon", "0.7", "--d1", "d2", "--max-trials", "40")
	report = r.object(t)
	claimed, _ = report["claimed"].(map[string]any)
	trials, _ = report["trials"].(map[string]any)
	if claimed["epsilon"] != 0.7 || claimed["source"] != "flag" || trials["d0"] != 40.0 || report["neighbour"] != "d2" {
		t.Errorf("claimed %v, trials %v, neighbour %v; want what the flags say", claimed, trials, report["neighbour"])
	}
	audit("--sql", "SELECT noisy(count(*), 1) FROM people").want(t, exitFailure, "the configuration has no claim for this query: give --epsilon")
	audit("--sql", "SELECT other(count(*)) FROM people").want(t, exitFailure, "other")
	audit("--sql", query, "--dsn", "postgres://u@127.0.0.1:1/x").want(t, exitFailure, "127.0.0.1:1")
	call(t, "", "audit", "--config", "/nonexistent.yaml", "--sql", query).want(t, exitFailure, "/nonexistent.yaml does not exist")
}

// TestAuditAdvice: rights on the copies of another neighbour, which run needs, are not reported as excessive.
func TestAuditAdvice(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, "CREATE SCHEMA d2; CREATE TABLE d2.people AS SELECT * FROM d0.people WHERE id <> 49; CREATE SCHEMA app; CREATE TABLE app.bills (x int); CREATE TABLE app.orders (x int)")
	replayer := replayRole(t, dsn, "d0", "d1", "d2", "app")
	r := call(t, "", "audit", "--dsn", replayer, "--d0", "d0", "--d1", "d1", "--epsilon", "1", "--sql", "SELECT count(*) FROM people")
	r.want(t, exitViolation, "may read besides the copies: app.bills, app.orders", "REVOKE SELECT ON TABLE app.bills, app.orders FROM")
	if strings.Contains(r.stderr, "d2") {
		t.Errorf("advice about another neighbour:\n%s", r.stderr)
	}
}

func TestAuditPlot(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "plots")
	call(t, "", "audit", "--dsn", copies(t), "--d0", "d0", "--d1", "d1", "--epsilon", "0.1", "--plot", dir,
		"--sql", "SELECT noisy(count(*), 0.5) FROM people").want(t, exitViolation)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 || len(entries)%2 == 1 {
		t.Errorf("%d files, %v; want an SVG and a PNG of each figure", len(entries), err)
	}
}

// TestAuditCopiesReplaced: if the copies are replaced during an audit, it ends without a verdict.
func TestAuditCopiesReplaced(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for _, hoist := range []string{"true", "false"} {
		dsn := copies(t) // with one database, sessions of the first audit could be taken for those of the second
		done := make(chan result, 1)
		go func() {
			done <- call(t, "", "audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--epsilon", "1", "--max-trials", "100000000", "--hoist="+hoist,
				"--sql", "SELECT noisy(count(*), 2) FROM people -- audited")
		}()
		conn := pgtest.Connect(t, dsn)
		for running := false; !running; time.Sleep(10 * time.Millisecond) {
			err := conn.QueryRow(t.Context(), `SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database()
				AND application_name = 'dpwatch-replay' AND query ~ 'noisy.*' AND query !~ 'pg_catalog'`).Scan(&running)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case r := <-done:
				t.Fatalf("it ended before the copies were replaced: %d\n%s%s", r.code, r.stdout, r.stderr)
			default:
			}
		}
		pgtest.Exec(t, dsn, "BEGIN; DROP TABLE d1.people; CREATE TABLE d1.people AS SELECT * FROM d0.people WHERE id <> 49; COMMIT")
		r := <-done
		r.want(t, exitFailure, "the copies in d0, d1 were replaced, or their rows changed, during the audit")
		if r.stdout != "" {
			t.Errorf("a report:\n%s", r.stdout)
		}
	}
}

// TestAuditMistakes: mistakes of new users, each with a message that says what to do.
func TestAuditMistakes(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	base := []string{"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1"}
	with := func(args ...string) []string { return append(append([]string{}, base...), args...) }
	const sql = "SELECT count(*) FROM people"
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"nothing", []string{"audit", "--sql", sql}, "--d0, --d1, --dsn, --epsilon missing: give these flags, or --config FILE"},
		{"no query at all", with("--epsilon", "1"), "give the query either with --sql or with --file"},
		{"two queries", with("--sql", sql, "--file", "q.sql", "--epsilon", "1"), "give the query either with"},
		{"no epsilon", with("--sql", sql), "--epsilon missing"},
		{"epsilon in words", with("--sql", sql, "--epsilon", "abc"), `--epsilon "abc": must be a number, for example 0.5`},
		{"negative delta", with("--sql", sql, "--epsilon", "1", "--delta", "-1"), "--delta -1: must be at least 0 and less than 1"},
		{"confidence in percent", with("--sql", sql, "--epsilon", "1", "--confidence", "95"), "--confidence 95: must be more than 0.5 and less than 1"},
		{"negative trials", with("--sql", sql, "--epsilon", "1", "--max-trials", "-1"), "--max-trials -1: must not be negative; 0 = by the claim"},
		{"a time without unit", with("--sql", sql, "--epsilon", "1", "--statement-timeout", "5"), "must be a duration with its unit"},
		{"no query", with("--sql", " ; ", "--epsilon", "1"), "--sql is empty"},
		{"an empty file", with("--file", file(t, "q.sql", "\ufeff \r\n"), "--epsilon", "1"), "is empty"},
		{"a directory", with("--file", t.TempDir(), "--epsilon", "1"), "is a directory"},
		{"two statements", with("--sql", sql+"; "+sql, "--epsilon", "1"), "multiple"},
		{"EXPLAIN", with("--sql", "EXPLAIN "+sql, "--epsilon", "1"), "refused: explain"},
		{"a function that is not there", with("--sql", "SELECT nosuch(count(*)) FROM people", "--epsilon", "1"), "install the engine's functions there"},
		{"a parameter without a value", with("--sql", "SELECT noisy(count(*), $1) FROM people", "--epsilon", "1"), "--param"},
		{"a table without a copy", with("--sql", "SELECT count(*) FROM orders", "--epsilon", "1"), "unknown_name"},
		{"D0 twice", []string{"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d0", "--sql", sql, "--epsilon", "1"}, "--d1 d0 is the schema of D0"},
		{"a query without its flag", with(sql, "--epsilon", "1"), "dpwatch audit takes only flags"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := call(t, "", tc.args...)
			r.want(t, exitFailure, tc.want)
			if strings.Count(r.stderr, "\n") > 5 {
				t.Errorf("not one clear message:\n%s", r.stderr)
			}
		})
	}
	replayer := replayRole(t, dsn)
	audit := func(dsn, d0 string, more ...string) []string {
		return append([]string{"audit", "--dsn", dsn, "--d0", d0, "--d1", "d1", "--sql", sql, "--epsilon", "1"}, more...)
	}
	pgtest.Exec(t, dsn, "CREATE SCHEMA nothing")
	call(t, "", audit(dsn, "D0")...).want(t, exitFailure, "does not exist: create the copies")
	call(t, "", audit(dsn, "nothing")...).want(t, exitFailure, "holds no table: create the copies")
	call(t, "", audit(replayer, "d0")...).want(t, exitFailure, `the role may not use it: GRANT USAGE ON SCHEMA "d0" TO`)
	role := pgtest.Connect(t, replayer).Config().User
	pgtest.Exec(t, dsn, "GRANT USAGE ON SCHEMA d0 TO "+role)
	call(t, "", audit(replayer, "d0")...).want(t, exitFailure, `the role may read no table of it: GRANT SELECT ON ALL TABLES IN SCHEMA "d0" TO`)
	u, err := url.Parse(replayer)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = ""
	call(t, "", audit(u.String(), "d0")...).want(t, exitFailure, "the connection string has no database name")
	pgtest.Exec(t, dsn, "ALTER ROLE "+role+" NOLOGIN")
	call(t, "", audit(replayer, "d0")...).want(t, exitFailure, "is not permitted to log in", "check the user")

	call(t, "", with("--sql", "SELECT noisy(count(*), $1) FROM people", "--param", "x", "--epsilon", "1", "--max-trials", "50")...).
		want(t, exitInconclusive, "every trial fails: SQLSTATE 22P02")
	r := call(t, "", with("--file", file(t, "crlf.sql", "\ufeffSELECT count(*)\r\nFROM people;\r\n"), "--epsilon", "0")...)
	r.want(t, exitViolation, "deterministic", "epsilon 0, delta 0")
}

// TestAuditConstants: naive noise in floating point is found behind two steps of arithmetic, whose numbers are in the
// query. The audit found it in each of 300 simulated ones, after 501 pairs in nine of ten and within 5000 in all: the
// probability that 20,000 do not suffice is far below 1e-6.
func TestAuditConstants(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, "CREATE FUNCTION naive(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT value + scale * ln((1 - random()) / (1 - random()))'")
	r := call(t, "", "audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--epsilon", "1", "--floating-point", "violation", "--max-trials", "20000",
		"--sql", "SELECT naive(count(*), 1) / 1000 * 37 FROM people WHERE id >= 50")
	r.want(t, exitViolation, "naive noise in floating point")
}
