package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/golden"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// missed are the sessions of docs/index.md whose DP statements are not recorded, with the reason that is counted, and why.
// A session without what it does belongs to the one before.
var missed = []struct {
	what, reason, why string
	statements        []string
}{
	{
		"it sets the claim to a computed value: `SELECT set_config('dp.epsilon', (0.25 * 2)::text, false)`", "settings_uncertain", "the value is not on the wire. Send it as a literal or a bound parameter",
		[]string{"SET dp.epsilon = '0.5'", "SELECT set_config('dp.epsilon', (0.25 * 2)::text, false)", "SELECT noisy(count(*), 4) FROM people"},
	},
	{
		"a claim that is different each time: `dp_count(count(*), random())`", "bad_claim", "the query promises nothing that a test can compare",
		[]string{"SELECT dp_count(count(*), random()) FROM people"},
	},
	{
		"a DP query in an UPDATE, DELETE or MERGE, or in RETURNING; one in a DO block or a procedure that depends on a variable, runs in a loop or is built at run time", "indirect_use",
		"only queries are replayed. Other queries of a DO block or a procedure are audited",
		[]string{"DO $$ DECLARE e float8 := 0.5; BEGIN PERFORM dp_count(count(*), e) FROM people; END $$"},
	},
	{"", "indirect_use", "", []string{"UPDATE notes SET x = (SELECT dp_count(count(*), 0.5) FROM people)::text RETURNING x"}},
	{"", "indirect_use", "", []string{"INSERT INTO notes SELECT dp_count(count(*), 0.5)::text FROM people RETURNING x, headcount()"}},
	{
		"one in a text that a function executes: `query_to_xml('SELECT dp_count(...)', ...)`", "indirect_use", "the text is no part of the query",
		[]string{"SELECT query_to_xml('SELECT dp_count(count(*), 0.5) FROM people', true, true, '')"},
	},
	{
		"one that a default, trigger, rule, policy, constraint, index, operator, cast or domain runs", "indirect_use", "the statement does not hold it; the catalog shows it",
		[]string{"INSERT INTO answers (id) VALUES (1) RETURNING v"},
	},
	{
		"a view or a function over protected tables: `SELECT headcount()`", "no_copy", "until every neighbour has a copy of it ([rewriting.md](rewriting.md))",
		[]string{"SELECT headcount()"},
	},
	{"", "no_copy", "", []string{"SELECT * FROM counted"}},
	{
		"a DP query that also writes: `WITH w AS (INSERT ...) SELECT dp_count(...) ...`", "side_effects", "a replay must change nothing",
		[]string{"WITH w AS (INSERT INTO notes SELECT 'x' RETURNING 1) SELECT dp_count(count(*), 0.5) FROM people"},
	},
	{
		"a DP query of a temporary table, such as a copy of a protected one, or a statement on one with a default or trigger that runs a DP function", "temp_table", "the neighbours have no such table. A temporary view is audited as its query",
		[]string{"CREATE TEMP TABLE people (id int)", "SELECT dp_count(count(*), 0.5) FROM people"},
	},
	{"", "temp_table", "", []string{"CREATE TEMP TABLE mine (id int)", "INSERT INTO mine SELECT id FROM people", "SELECT dp_count(count(*), 0.5) FROM mine"}},
	{"", "temp_table", "", []string{"CREATE TEMP TABLE mine (id int, v float8 DEFAULT headcount())", "INSERT INTO mine (id) VALUES (1) RETURNING v"}},
	{
		"a temporary function: `SELECT pg_temp.f()`", "unknown_function", "its body is not known",
		[]string{"CREATE FUNCTION pg_temp.f() RETURNS float8 LANGUAGE sql AS 'SELECT dp_count(count(*), 0.5) FROM people'", "SELECT pg_temp.f()"},
	},
	{
		"a statement with a name that no catalog has: it was dropped, is not committed, or is not in the shadow database while `privacy.catalog` is not set", "unknown_name", "it may reach anything",
		nil,
	},
	{
		"a statement that is longer than `proxy.max_statement`", "too_long", "the memory of a session is bounded",
		[]string{"SELECT dp_count(count(*), 0.5) FROM people /*" + strings.Repeat("x", 300<<10) + "*/"},
	},
	{
		"more statements at once than 1 MiB", "over_budget", "the same; capture resumes when the session is idle ([admin.md](admin.md#which-sessions-are-not-captured))",
		nil,
	},
	{
		"CREATE VIEW and PREPARE", "not_select", "they run no query: what they define counts when it is used",
		[]string{"CREATE VIEW again AS SELECT dp_count(count(*), 0.5) FROM people"},
	},
	{
		"EXPLAIN without ANALYZE", "explain", "it runs no query. A function that it computes, because it is declared `IMMUTABLE` or `STABLE`, is an `indirect_use`",
		[]string{"EXPLAIN SELECT dp_count(count(*), 0.5) FROM people"},
	},
	{"FETCH from a cursor that a function opened", "unknown_statement", "its query is not on the wire. DECLARE the cursor in the session", nil},
	{"a FunctionCall message (libpq's PQfn), except for large objects", "function_call", "it names no function. Call it in a SELECT", nil},
	{
		"a cursor or portal between whose plan and rows the `search_path`, the role or a format changed", "settings_uncertain", "names have the meaning of the plan, functions read the settings when a row is computed",
		[]string{"BEGIN", "DECLARE c CURSOR FOR SELECT dp_count(count(*), 0.5) FROM people", "SET LOCAL search_path = public, pg_catalog", "FETCH c", "COMMIT"},
	},
}

// TestMissedInTheManual: the table of docs/index.md has the rows of missed. -update writes it.
func TestMissedInTheManual(t *testing.T) {
	t.Parallel()
	const page, head = "../../docs/index.md", "| what a session does | counted as | why |\n|---|---|---|\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, table, ok := strings.Cut(string(text), head)
	if !ok {
		t.Fatal("no table")
	}
	table, after, _ := strings.Cut(table+"\n", "\n\n")
	var want strings.Builder
	for _, m := range missed {
		if m.what != "" {
			fmt.Fprintf(&want, "| %s | `%s` | %s |\n", m.what, m.reason, m.why)
		}
	}
	if rows := strings.TrimSuffix(want.String(), "\n"); golden.Updating() {
		if after = strings.TrimSuffix(after, "\n"); after != "" {
			after = "\n" + after + "\n"
		}
		if err := os.WriteFile(page, []byte(before+head+rows+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(rows, strings.TrimSuffix(table, "\n")); diff != "" {
		t.Errorf("run with -update (-want +got):\n%s", diff)
	}
}

// TestClientsMissed: what docs/index.md says of statements that are not recorded is so, and each is counted.
func TestClientsMissed(t *testing.T) {
	t.Parallel()
	s := startClientSidecar(t)
	want := map[string]float64{}
	for i, m := range missed {
		cfg, err := pgx.ParseConfig(s.dsn())
		if err != nil {
			t.Fatal(err)
		}
		cfg.RuntimeParams["application_name"] = fmt.Sprintf("missed %d", i)
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range m.statements {
			if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if len(m.statements) > 0 {
			want[m.reason]++
		}
	}
	s.settle(t)
	skipped := s.metrics(t, "dpwatch_queries_skipped_total")
	skipped["too_long"] = s.metrics(t, "dpwatch_statements_skipped_total")["too_long"] // by the relay
	for reason, n := range want {
		if skipped[reason] < n {
			t.Errorf("%v statements are counted as %s, want at least %v", skipped[reason], reason, n)
		}
	}
	rows, err := pgtest.Connect(t, s.direct).Query(t.Context(), "SELECT application || ' ' || summary || ' ' || coalesce(epsilon::text, '-') FROM dpwatch_ledger.queries q JOIN dpwatch_ledger.query_users u ON u.query = q.id WHERE epsilon IS DISTINCT FROM $1", lastEpsilon)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(recorded) > 0 {
		t.Errorf("recorded: %q, %v", recorded, err)
	}
}
