package replay_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestPlansOfNamedStatements: a statement that the client named gets plans as the server chooses them: custom plans
// five times, then possibly a generic one. An unnamed statement gets a plan for its parameters in every trial.
func TestPlansOfNamedStatements(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	// The number of generic plans that this session has used so far, for the statements of both worlds.
	const sql = `SELECT count(*) + 0 * $1 + (SELECT sum(generic_plans) FROM pg_prepared_statements) - (SELECT count(*) FROM %s.people) FROM %s.people`
	for _, tc := range []struct {
		name    string
		named   bool
		mode    string // the client's own plan_cache_mode
		generic bool
	}{
		{name: "named", named: true, generic: true},
		{name: "unnamed"},
		{name: "unnamed, with a mode of its own", mode: "force_generic_plan", generic: true},
		{name: "named, with a mode of its own", named: true, mode: "force_custom_plan"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			opt := options(dsn)
			opt.Connections = 1
			s := replay.Statement{Named: tc.named, Params: []capture.Param{{OID: 23, Value: []byte("7")}}}
			if tc.mode != "" {
				s.Settings = map[string]string{"plan_cache_mode": tc.mode}
			}
			got, err := rounds(t, player(t, opt), s, sql, 30)
			if err != nil {
				t.Fatal(err)
			}
			most, early := 0.0, 0.0
			for i, round := range got {
				for _, o := range round {
					if o.Failed() {
						t.Fatalf("SQLSTATE %s", o.SQLState)
					}
					n := o.Rows[0][0].Num
					most = max(most, n)
					if i < 5 {
						early = max(early, n)
					}
				}
			}
			if (most > 0) != tc.generic {
				t.Errorf("%g executions with a generic plan, want some: %t", most, tc.generic)
			}
			if tc.mode == "" && early > 0 {
				t.Errorf("%g generic plans among the first five executions of each world", early)
			}
		})
	}
}

// TestPlansOfConcurrentSessions: sessions that are opened at the same time may all find that the statement cannot be
// prepared any more. The race detector checks what they share.
func TestPlansOfConcurrentSessions(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	opt := options(dsn)
	opt.Connections = 4
	run, err := player(t, opt).Start(replay.Statement{Worlds: []string{"SELECT count(income) FROM d0.people", "SELECT count(income) FROM d1.people"}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Rounds(t.Context(), 20); err != nil {
		t.Fatal(err)
	}
	run.Close()
	pgtest.Exec(t, dsn, "ALTER TABLE d1.people RENAME COLUMN income TO salary")
	after, err := run.Rounds(t.Context(), 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, round := range after {
		if round[0].Failed() || round[1].SQLState != "42703" {
			t.Fatalf("outcomes %q and %q; want a number, and the error of a missing column", round[0].SQLState, round[1].SQLState)
		}
	}
}
