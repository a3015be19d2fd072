package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// dashboard returns what a session sends that runs the queries again and again.
func dashboard(session uint64, times int, queries ...string) (all []capture.Query) {
	for range times {
		for _, sql := range queries {
			q := query(sql)
			q.SessionID = session
			all = append(all, q)
		}
	}
	return all
}

// The queries that a session runs together, again and again, are also audited together, each group once. One seed for a session is found; fresh noise,
// which keeps half of the claim, is not, with a probability above 1 - 1e-6.
func TestSequences(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) {
		o.Rewriter, o.SequenceWindow, o.Analysis.MaxTrials = anyFunction(t), time.Hour, 100
	})
	pgtest.Exec(t, r.dsn, engines)
	const total, others = "SELECT noise(count(*), 4) FROM people /*dp_epsilon='0.5'*/", "SELECT noise(count(*), 4) FROM people WHERE id > 1 /*dp_epsilon='0.5'*/"
	for i, function := range []string{"seeded", "noisy"} {
		name := strings.NewReplacer("noise", function)
		for _, q := range dashboard(uint64(i), 4, name.Replace(total), name.Replace(others)) {
			r.Submit(q)
		}
		for _, q := range dashboard(uint64(i+10), 3, "SELECT 1", name.Replace(total)) {
			r.Submit(q)
		}
	}
	r.run(t)
	sequences := map[string]analysis.Verdict{}
	for _, e := range r.decided(t) {
		if !strings.HasPrefix(e.Summary, "2 queries together: ") {
			if e.Report.Verdict == analysis.Violation {
				t.Errorf("%s alone: %s", e.Summary, e.Report.Reason)
			}
			continue
		}
		function := "noisy"
		if strings.Contains(e.Summary, "seeded") {
			function = "seeded"
		}
		sequences[function] = e.Report.Verdict
		if c := e.Report.Claimed; c.Epsilon != 1 || c.Source != "sum" || e.Seen != 1 {
			t.Errorf("%s: claimed %+v, seen %d; want the sum, once", e.Summary, c, e.Seen)
		}
	}
	if len(sequences) != 2 || sequences["seeded"] != analysis.Violation || sequences["noisy"] != analysis.NoEvidence {
		t.Errorf("sequences %v, want a violation of seeded and none of noisy", sequences)
	}
	if s := r.Status(); s.Captured != 28 || len(s.Audits) != 6 {
		t.Errorf("%d captured, %d audits; want 28 and 6", s.Captured, len(s.Audits))
	}
}
