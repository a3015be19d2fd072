package replay_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestVerify: tables that were made while other data stood in one world give false evidence. Few unmodified trials have
// shown it; the look before a violation is told does, whether the tables are still there or have been made anew.
func TestVerify(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ change, renew bool }{
		"nothing changes":            {},
		"sessions are opened anew":   {renew: true},
		"the tables are stale":       {change: true},
		"the tables are right again": {change: true, renew: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := hoistShadow(t)
			conn := pgtest.Connect(t, dsn)
			sql := `SELECT sum(x) + noise() FROM %s.t`
			s := replay.Statement{Worlds: []string{strings.ReplaceAll(sql, "%s", "d0"), strings.ReplaceAll(sql, "%s", "d1")}, Hoist: replay.ForceHoisting()}
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
			run.Close()
			if tc.change {
				must(conn.Exec(t.Context(), "UPDATE d1.t SET x = x + 1"))
			}
			must(run.Rounds(t.Context(), 500))
			if tc.change {
				must(conn.Exec(t.Context(), "UPDATE d1.t SET x = x - 1"))
			}
			if tc.renew {
				run.Close()
			}
			if differ := s.Hoist.Disagreed(); differ != nil {
				t.Fatalf("%v before it was looked for", differ)
			}
			looks := s.Hoist.Report().Comparisons
			err = run.Verify(t.Context())
			var differ *replay.DisagreementError
			r := s.Hoist.Report()
			if tc.change {
				if !errors.As(err, &differ) || !strings.Contains(differ.What, "column 1 on D1") || s.Hoist.Disagreed() != differ || r.Hoisted {
					t.Errorf("%v, %+v; want the difference told", err, r)
				}
				return
			}
			if err != nil || !r.Hoisted || r.Comparisons != looks+1 {
				t.Errorf("%v, %+v; want one more comparison", err, r)
			}
			// Nothing new, nothing to compare; and the run goes on.
			if err := run.Verify(t.Context()); err != nil || s.Hoist.Report().Comparisons != looks+1 {
				t.Errorf("%v, %+v; want no further comparison", err, s.Hoist.Report())
			}
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
