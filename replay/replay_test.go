package replay_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// shadow returns a database with schemas d0 and d1: d1 lacks the person with id 3, the only one in group "rare".
func shadow(t *testing.T) string {
	t.Helper()
	dsn := pgtest.Database(t)
	fillShadow(t, dsn)
	return dsn
}

// fillShadow creates the schemas d0 and d1.
func fillShadow(t *testing.T, dsn string) {
	t.Helper()
	for _, schema := range []string{"d0", "d1"} {
		pgtest.Exec(t, dsn, strings.ReplaceAll(`CREATE SCHEMA %s;
			CREATE TABLE %s.people (id int PRIMARY KEY, grp text, income float8);
			INSERT INTO %s.people VALUES (1, 'a', 10), (2, 'b', 20.5)`, "%s", schema))
	}
	pgtest.Exec(t, dsn, `INSERT INTO d0.people VALUES (3, 'rare', NULL)`)
}

func options(dsn string) replay.Options {
	return replay.Options{
		DSN: dsn, SearchPath: []string{"public"}, StatementTimeout: time.Minute, ConnectTimeout: time.Minute,
		MaxRows: 1000, MaxBytes: 1 << 20,
	}
}

func player(t *testing.T, opt replay.Options) *replay.Player {
	t.Helper()
	p, err := replay.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rounds replays a statement with %s for the schema.
func rounds(t *testing.T, p *replay.Player, s replay.Statement, sql string, n int) ([]replay.Round, error) {
	t.Helper()
	s.Worlds = []string{strings.ReplaceAll(sql, "%s", "d0"), strings.ReplaceAll(sql, "%s", "d1")}
	run, err := p.Start(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	return run.Rounds(t.Context(), n)
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	number := func(text string) outcome.Value {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Error(err)
		}
		return outcome.Value{Kind: outcome.Number, Num: f, Text: text}
	}
	text := func(s string) outcome.Value { return outcome.Value{Kind: outcome.Text, Text: s} }
	for _, tc := range []struct {
		name, sql string
		stmt      replay.Statement
		d0, d1    outcome.Outcome
	}{
		{
			name: "groups, a missing one, NULL", sql: `SELECT grp, sum(income) FROM %s.people GROUP BY 1 ORDER BY 1`,
			d0: outcome.Outcome{
				Columns: []outcome.Column{{Name: "grp", Discrete: true, Type: 25}, {Name: "sum", Type: 701}},
				Rows:    [][]outcome.Value{{text("a"), number("10")}, {text("b"), number("20.5")}, {text("rare"), {Kind: outcome.Null}}},
			},
			d1: outcome.Outcome{
				Columns: []outcome.Column{{Name: "grp", Discrete: true, Type: 25}, {Name: "sum", Type: 701}},
				Rows:    [][]outcome.Value{{text("a"), number("10")}, {text("b"), number("20.5")}},
			},
		},
		{
			name: "no rows in one world", sql: `SELECT id::int8 FROM %s.people WHERE id > 2`,
			d0: outcome.Outcome{Columns: []outcome.Column{{Name: "id", Discrete: true, Type: 20}}, Rows: [][]outcome.Value{{number("3")}}},
			d1: outcome.Outcome{Columns: []outcome.Column{{Name: "id", Discrete: true, Type: 20}}},
		},
		{
			name: "an error in one world", sql: `SELECT 1 / (count(*) - 2) FROM %s.people`,
			d0: outcome.Outcome{Columns: []outcome.Column{{Name: "?column?", Discrete: true, Type: 20}}, Rows: [][]outcome.Value{{number("1")}}},
			d1: outcome.Outcome{SQLState: "22012", Message: "division by zero\nVERROR\nC22012"},
		},
		{
			name: "parameters, text and binary, NULL and empty", sql: `SELECT $1::int4 + (SELECT count(*) FROM %s.people), $2::text, $3::text, true AS bool`,
			stmt: replay.Statement{Params: []capture.Param{
				{OID: 23, Format: 1, Value: []byte{0, 0, 0, 7}}, {OID: 25, Null: true}, {OID: 25, Value: nil},
			}},
			d0: outcome.Outcome{
				Columns: []outcome.Column{{Name: "?column?", Discrete: true, Type: 20}, {Name: "text", Discrete: true, Type: 25}, {Name: "text", Discrete: true, Type: 25}, {Name: "bool", Discrete: true, Type: 16}},
				Rows:    [][]outcome.Value{{number("10"), {Kind: outcome.Null}, text(""), {Kind: outcome.Bool, Num: 1}}},
			},
			d1: outcome.Outcome{
				Columns: []outcome.Column{{Name: "?column?", Discrete: true, Type: 20}, {Name: "text", Discrete: true, Type: 25}, {Name: "text", Discrete: true, Type: 25}, {Name: "bool", Discrete: true, Type: 16}},
				Rows:    [][]outcome.Value{{number("9"), {Kind: outcome.Null}, text(""), {Kind: outcome.Bool, Num: 1}}},
			},
		},
		{
			name: "binary parameters: NaN, an array with NULL, a range",
			sql:  `SELECT ($1::numeric = 'NaN')::text, $2::text, $3::text FROM %s.people LIMIT 1`,
			stmt: replay.Statement{Named: true, Params: []capture.Param{
				{OID: 1700, Format: 1, Value: []byte{0, 0, 0, 0, 0xc0, 0, 0, 0}},
				{OID: 1007, Format: 1, Value: []byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 23, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff}},
				{OID: 3904, Format: 1, Value: []byte{2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5}},
			}},
			d0: outcome.Outcome{
				Columns: []outcome.Column{{Name: "text", Discrete: true, Type: 25}, {Name: "text", Discrete: true, Type: 25}, {Name: "text", Discrete: true, Type: 25}},
				Rows:    [][]outcome.Value{{text("true"), text("{1,NULL}"), text("[1,5)")}},
			},
			d1: outcome.Outcome{
				Columns: []outcome.Column{{Name: "text", Discrete: true, Type: 25}, {Name: "text", Discrete: true, Type: 25}, {Name: "text", Discrete: true, Type: 25}},
				Rows:    [][]outcome.Value{{text("true"), text("{1,NULL}"), text("[1,5)")}},
			},
		},
		{
			name: "a setting of the client", sql: `SELECT current_setting('dp.epsilon'), '2026-11-21'::date::text FROM %s.people LIMIT 1`,
			stmt: replay.Statement{Settings: map[string]string{"dp.epsilon": "0.5", "search_path": "nowhere", "statement_timeout": "1"}},
			d0: outcome.Outcome{
				Columns: []outcome.Column{{Name: "current_setting", Discrete: true, Type: 25}, {Name: "text", Discrete: true, Type: 25}},
				Rows:    [][]outcome.Value{{text("0.5"), text("2026-11-21")}},
			},
			d1: outcome.Outcome{
				Columns: []outcome.Column{{Name: "current_setting", Discrete: true, Type: 25}, {Name: "text", Discrete: true, Type: 25}},
				Rows:    [][]outcome.Value{{text("0.5"), text("2026-11-21")}},
			},
		},
		{
			name: "too many rows in one world", sql: `SELECT g FROM generate_series(1, 999 + (SELECT count(*) FROM %s.people WHERE id <> 1)) g`,
			d0: outcome.Outcome{SQLState: replay.TooLarge},
			d1: outcome.Outcome{SQLState: ""},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := rounds(t, player(t, options(dsn)), tc.stmt, tc.sql, 3)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 3 {
				t.Fatalf("%d rounds, want 3", len(got))
			}
			for _, p := range got {
				if tc.name == "too many rows in one world" { // the 1000 rows of D1 are not listed here
					if len(p[1].Rows) != 1000 {
						t.Errorf("D1 has %d rows, want 1000", len(p[1].Rows))
					}
					p[1] = outcome.Outcome{}
					p[0].Message = "" // how many there are
				}
				if diff := cmp.Diff([]outcome.Outcome{tc.d0, tc.d1}, []outcome.Outcome{p[0], p[1]}); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

func TestTimeoutIsAnOutcome(t *testing.T) {
	t.Parallel()
	opt := options(shadow(t))
	for opt.StatementTimeout = time.Second; ; opt.StatementTimeout *= 4 { // until it is far above the time of the quick world on a slow machine
		got, err := rounds(t, player(t, opt), replay.Statement{}, `SELECT CASE WHEN count(*) = 3 THEN pg_sleep(600)::text ELSE 'fast' END FROM %s.people`, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got[0][1].SQLState == replay.Timeout && opt.StatementTimeout < time.Minute {
			continue
		}
		if got[0][0].SQLState != replay.Timeout || got[0][1].Failed() {
			t.Errorf("D0 %q, D1 %q; want a timeout on D0 alone", got[0][0].SQLState, got[0][1].SQLState)
		}
		return
	}
}

// The statement timeout applies to trials; dpwatch's own queries have a longer one.
func TestOwnQuestionsHaveTheirTime(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	opt := options(dsn)
	opt.StatementTimeout = time.Millisecond
	p := player(t, opt)
	if _, err := p.Check(t.Context(), "d0", []string{"d1"}, []string{"people"}); err != nil {
		t.Error(err)
	}
	if _, err := p.Epoch(t.Context(), []string{"d0", "d1"}); err != nil {
		t.Error(err)
	}
	if epoch, err := p.Epoch(t.Context(), []string{"d0", "d1", "gone"}); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("copies that are missing have the epoch %q, %v", epoch, err)
	}
	for _, simple := range []bool{false, true} {
		got, err := rounds(t, p, replay.Statement{Simple: simple}, `SELECT pg_sleep(600) FROM %s.people`, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, round := range got {
			if round[0].SQLState != replay.Timeout || round[1].SQLState != replay.Timeout {
				t.Errorf("round %+v, want timeouts", round)
			}
		}
	}
}

// Every trial draws again, also in a session that ran other trials.
func TestFreshNoise(t *testing.T) {
	t.Parallel()
	got, err := rounds(t, player(t, options(shadow(t))), replay.Statement{}, `SELECT random() FROM %s.people LIMIT 1`, 50)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[float64]bool{}
	for _, p := range got {
		for _, o := range []outcome.Outcome{p[0], p[1]} {
			v := o.Rows[0][0].Num
			if seen[v] { // 100 draws of 52 bits: a repeat by chance has probability 10^-12
				t.Fatalf("the value %v came twice", v)
			}
			seen[v] = true
		}
	}
}

func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	var setup *replay.SetupError
	_, err := rounds(t, player(t, options(dsn)), replay.Statement{}, `DELETE FROM %s.people`, 1)
	if !errors.As(err, &setup) || !strings.Contains(err.Error(), "writes") {
		t.Errorf("got %v, want a SetupError about writing", err)
	}
	got, err := rounds(t, player(t, options(dsn)), replay.Statement{}, `SELECT count(*) FROM %s.people`, 1)
	if err != nil || got[0][0].Rows[0][0].Num != 3 {
		t.Errorf("after the refused DELETE: %v, %v", got, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	for _, tc := range []struct {
		name, dsn, sql, want string
		transient            bool
	}{
		{"missing table", dsn, `SELECT * FROM %s.gone`, "create the copies again", false},
		{"missing schema", dsn, `SELECT * FROM %sx.people`, "create the copies again", false},
		{"missing function", dsn, `SELECT anon_count(id, 1) FROM %s.people`, "install the engine's functions", false},
		{"nobody listens", "postgres://u@127.0.0.1:1/x?sslmode=disable", `SELECT 1`, "shadow database x at 127.0.0.1:1", true},
		{"no such database", "", `SELECT 1`, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.name == "no such database" {
				cfg, err := pgx.ParseConfig(dsn)
				if err != nil {
					t.Fatal(err)
				}
				tc.dsn = strings.Replace(dsn, "/"+cfg.Database, "/no_such_database", 1)
				tc.want = "create it or correct the connection string"
			}
			_, err := rounds(t, player(t, options(tc.dsn)), replay.Statement{}, tc.sql, 1)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want it to say %q", err, tc.want)
			}
			if replay.Transient(err) != tc.transient {
				t.Errorf("Transient(%v) = %t", err, !tc.transient)
			}
		})
	}
}

// A server restart is a transient error; the run continues afterwards.
func TestSessionsKilled(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	run, err := player(t, options(dsn)).Start(replay.Statement{Worlds: []string{"SELECT 1 FROM d0.people", "SELECT 1 FROM d1.people"}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Rounds(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	conn := pgtest.Connect(t, dsn)
	tag, err := conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dpwatch-replay' AND datname = current_database()`)
	if err != nil || tag.RowsAffected() != 3 {
		t.Fatalf("terminated %v, %v; want the two sessions of trials and the idle one", tag, err)
	}
	if _, err := run.Rounds(t.Context(), 2); !replay.Transient(err) {
		t.Errorf("after the kill: %v, want a transient error", err)
	}
	if _, err := run.Rounds(t.Context(), 2); err != nil {
		t.Errorf("the run did not recover: %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	conn := pgtest.Connect(t, dsn)
	p := player(t, options(dsn))
	warnings, err := p.Check(t.Context(), "d0", []string{"d1"}, []string{"people"})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "SUPERUSER") {
		t.Errorf("a right shadow: %v, %v; want one warning about the superuser", warnings, err)
	}
	for _, tc := range []struct{ name, sql, want string }{
		{"another column order", `DROP TABLE d1.people; CREATE TABLE d1.people (grp text, id int, income float8)`, "columns differ"},
		{"a table is missing", `DROP TABLE d1.people`, "does not exist"},
	} {
		if _, err := conn.Exec(t.Context(), tc.sql); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Check(t.Context(), "d0", []string{"d1"}, []string{"people"}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want it to say %q", tc.name, err, tc.want)
		}
	}
}

func BenchmarkRounds(b *testing.B) {
	dsn := pgtest.Database(b)
	p, err := replay.New(options(dsn))
	if err != nil {
		b.Fatal(err)
	}
	run, err := p.Start(replay.Statement{Worlds: []string{"SELECT random()", "SELECT random()"}}, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer run.Close()
	b.ResetTimer()
	for n := 0; n < b.N; n += 25 {
		if _, err := run.Rounds(b.Context(), 25); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
}
