package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// slowRig returns a rig whose function slowly sleeps 10 ms before it draws noise.
func slowRig(t *testing.T, change func(*audit.Options)) *rig {
	t.Helper()
	r := newRig(t, func(o *audit.Options) {
		rewriter, err := rewrite.New(rewrite.Options{
			Protected: []rewrite.Table{{Schema: "public", Name: "people"}}, AllowFunctions: []string{"noisy", "slowly"},
			Claims: rewrite.ClaimRules{TrustComment: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		o.Rewriter, o.MaxAudits, o.BatchTrials, o.TurnTrials, o.Analysis.MaxTrials = rewriter, 100, 25, 200, 10_000
		if change != nil {
			change(o)
		}
	})
	pgtest.Exec(t, r.dsn, `CREATE FUNCTION slowly(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
		AS 'SELECT noisy(value, scale) FROM pg_sleep(0.01)'`)
	return r
}

// TestBrokenAmongTwenty: a broken query that needs few trials is found while the earlier, honest ones have had only
// their first turns.
func TestBrokenAmongTwenty(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	r := slowRig(t, nil)
	for i := range 19 {
		r.Submit(query(fmt.Sprintf("SELECT slowly(count(*), 4)%s FROM people /*dp_epsilon='0.5'*/", strings.Repeat(" + 1 - 1", i))))
	}
	r.Submit(query("SELECT slowly(count(*), 0.1) AS broken FROM people /*dp_epsilon='0.5'*/"))
	began := time.Now()
	r.run(t)
	var entries []view.Entry
	eventually.True(t, "the last query has trials", func() bool {
		entries = r.Status().Audits
		return entries[19].Report.Trials.D0 > 0
	}, func() any { return entries })
	long := 0
	for _, e := range entries[:19] {
		if e.Report.Trials.D0 > 100 {
			long++
		}
	}
	// One turn in nine is not a first one; two workers may each have one more.
	if long > 4 {
		t.Errorf("%d honest queries had more than a first turn before the last query had one; want 4 at most", long)
	}
	// Later the confirmation of the violation, in new sessions, may take as long as many turns.
	eventually.True(t, "the broken query is found", func() bool { return r.Status().Audits[19].Report.Verdict == analysis.Violation }, func() any { return r.Status().Audits[19] })
	t.Logf("found after %.1f s; %d others had more than a first turn before", time.Since(began).Seconds(), long)
}
