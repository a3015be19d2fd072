package audit_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestLostTable: a neighbour that loses its table during an audit is no evidence. The audit waits, shows the remedy,
// and begins again when the copies exist again; in either protocol.
func TestLostTable(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for _, protocol := range []capture.Protocol{capture.Simple, capture.Extended} {
		t.Run(protocol.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(o *audit.Options) { o.Analysis.MaxTrials, o.TurnTrials = 1_000_000, 1 })
			q := query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/")
			q.Protocol = protocol
			r.Submit(q)
			r.run(t)
			r.wait(t, "trials", func(e view.Entry) bool { return e.Report.Trials.D0 > 100 })
			conn := pgtest.Connect(t, r.dsn)
			if _, err := conn.Exec(t.Context(), "ALTER TABLE d1.people RENAME TO lost"); err != nil {
				t.Fatal(err)
			}
			e := r.wait(t, "the loss is told", func(e view.Entry) bool { return e.State == view.Waiting && e.Trouble != "" })
			if !strings.Contains(e.Trouble, "the shadow database lacks a table that the query reads: create the copies again") {
				t.Errorf("trouble %q", e.Trouble)
			}
			if e.Report.Verdict == analysis.Violation {
				t.Errorf("a lost table is taken for a leak: %+v", e.Report)
			}
			if _, err := conn.Exec(t.Context(), "ALTER TABLE d1.lost RENAME TO people"); err != nil {
				t.Fatal(err)
			}
			before := e.Report.Trials.D0
			e = r.wait(t, "trials again", func(e view.Entry) bool { return e.Trouble == "" && e.Report.Trials.D0 > before })
			if e.Report.Verdict == analysis.Violation {
				t.Errorf("%+v", e.Report)
			}
		})
	}
}
