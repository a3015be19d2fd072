package replay_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestVerify: a change under hoisted trials is found before a violation is reported: changed source rows of the tables
// exactly, in a session of its own; and a change that affects trials but not tables by comparison with unmodified
// trials. The view d1.t has other values for trials, which are read-only, than for the transactions that create tables,
// after moved(shift) changes. The probability that a comparison finds a difference where there is none is below 1e-6.
func TestVerify(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ change, what string }{
		"nothing changes":       {},
		"the rows change":       {"UPDATE d1.rows SET x = x + 1 WHERE id = 7", "the rows of a part on D1"},
		"a row more":            {"INSERT INTO d1.rows VALUES (5000, 1, 1)", "the rows of a part on D1"},
		"trials see other rows": {"UPDATE moved SET shift = 1", "column 1 on D1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := hoistShadow(t, `CREATE TABLE moved AS SELECT 0 AS shift`, `DROP VIEW d1.calm, d1.over_wild, d1.wild`, `ALTER TABLE d1.t RENAME TO rows`,
				`CREATE VIEW d1.t AS SELECT id, uid, x + CASE current_setting('transaction_read_only') WHEN 'on' THEN (SELECT shift FROM moved) ELSE 0 END AS x FROM d1.rows`)
			s := replay.Statement{Worlds: worldsOf(`SELECT sum(x) + noise() FROM %s.t`), Hoist: replay.ForceHoisting()}
			run, err := player(t, options(dsn)).Start(s, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			must := func(_ any, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(run.Rounds(t.Context(), 120))
			if tc.change != "" {
				pgtest.Exec(t, dsn, tc.change)
			}
			must(run.Rounds(t.Context(), 50)) // in the existing sessions
			if differ := s.Hoist.Disagreed(); differ != nil {
				t.Fatalf("%v before it was looked for", differ)
			}
			looks := s.Hoist.Report().Comparisons
			err = run.Verify(t.Context())
			var differ *replay.DisagreementError
			r := s.Hoist.Report()
			if tc.change != "" {
				if !errors.As(err, &differ) || !strings.Contains(differ.What, tc.what) || s.Hoist.Disagreed() != differ || r.Hoisted {
					t.Errorf("%v, %+v; want %s", err, r, tc.what)
				}
				return
			}
			if err != nil || !r.Hoisted || r.Comparisons != looks+1 {
				t.Errorf("%v, %+v; want one more comparison", err, r)
			}
			// Without new rounds there is no comparison; the run continues, also with new sessions.
			if err := run.Verify(t.Context()); err != nil || s.Hoist.Report().Comparisons != looks+1 {
				t.Errorf("%v, %+v; want no further comparison", err, s.Hoist.Report())
			}
			run.Close()
			for batch, err := range run.Stream(t.Context(), 50) {
				if err != nil || len(batch.Rounds) != 50 {
					t.Errorf("%d rounds, %v", len(batch.Rounds), err)
				}
				break
			}
			if err := run.Verify(t.Context()); err != nil || s.Hoist.Report().Comparisons < looks+2 {
				t.Errorf("%v, %+v; want a further comparison", err, s.Hoist.Report())
			}
		})
	}
}

// TestSessionsCompare: the tables of a session that is opened later are compared with those of the first one.
func TestSessionsCompare(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	s := replay.Statement{Worlds: worldsOf(`SELECT sum(x) + noise() FROM %s.t`), Hoist: replay.ForceHoisting()}
	run, err := player(t, options(dsn)).Start(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Rounds(t.Context(), 120); err != nil {
		t.Fatal(err)
	}
	run.Close()
	pgtest.Exec(t, dsn, "UPDATE d1.t SET x = x + 1e-9 WHERE id = 7")
	_, err = run.Rounds(t.Context(), 20)
	var differ *replay.DisagreementError
	if !errors.As(err, &differ) || differ.What != "the rows of a part on D1" || s.Hoist.Disagreed() != differ || s.Hoist.Report().Hoisted {
		t.Errorf("%v, %+v; want the difference", err, s.Hoist.Report())
	}
}
