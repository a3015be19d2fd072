package audit_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// twinSQL makes a twin of D0 in which only the group 9 has another number of rows.
const twinSQL = `CREATE SCHEMA d0_twin; CREATE TABLE d0_twin.people AS SELECT * FROM d0.people UNION ALL SELECT 1000 + g, 9 FROM generate_series(1, 9) g`

// exactQuery is a violation without noise, whose answers are the same on D0 and its twin.
const exactQuery = "SELECT count(*) FROM people WHERE grp < 9 /*dp_epsilon='0.5'*/"

// TestTwin: a violation whose answers differ between D0 and its twin is inconclusive, whoever runs the trials, and one
// whose answers are alike is confirmed on the twin. A new process restores both. Answers without noise are never blocked
// by chance; those with noise fail to be blocked with a probability far below 1e-6.
func TestTwin(t *testing.T) {
	t.Parallel()
	for name, workers := range map[string]int{"here": 1, "a worker": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedgerRigOn(t, replay.Options{Copies: []string{"d0", "d1"}, Twin: "d0_twin"}, func(o *audit.Options) {
				o.Workers, o.Twin = workers, "d0_twin"
			})
			pgtest.Exec(t, l.dsn, twinSQL)
			stop := l.begin(t)
			if workers == 0 {
				l.worker(t, "one", nil)
			}
			l.Submit(query(exactQuery))
			l.Submit(query(leakyQuery))
			entries := l.decided(t)
			stop()
			controlled(t, entries, analysis.ControlPassed, analysis.ControlNamed)
			l.mu.Lock()
			kinds := map[string]finding.Kind{}
			for _, f := range l.findings {
				kinds[f.ID] = f.Kind
			}
			if want := map[string]finding.Kind{entries[0].ID: finding.Deterministic, entries[1].ID: finding.CopiesDiffer}; len(l.findings) != 2 || !maps.Equal(kinds, want) {
				t.Errorf("findings %+v, want the kinds %v", l.findings, want)
			}
			l.mu.Unlock()

			l.restart(t, nil)
			stop = l.begin(t)
			l.restored(t)
			controlled(t, l.decided(t), analysis.ControlPassed, analysis.ControlNamed)
			stop()
		})
	}
}

// controlled checks the results of two audits, of which the second one is blocked if it was controlled.
func controlled(t *testing.T, entries []view.Entry, states ...analysis.ControlState) {
	t.Helper()
	for i, e := range entries {
		r := e.Report
		verdict := analysis.Violation
		if r.Control.Blocks() {
			verdict = analysis.Inconclusive
		}
		if r.Control == nil || r.Control.State != states[i] || r.Verdict != verdict || r.Control.Blocks() != strings.HasPrefix(r.Reason, analysis.BlockedReason) {
			t.Errorf("audit %d: %s (%s), control %+v; want %s", i, r.Verdict, r.Reason, r.Control, states[i])
		}
	}
}

// TestMissingTwin: copies that were made before there was a twin are audited without control, with a warning. Once the
// twin is there, audits begin again, and are controlled.
func TestMissingTwin(t *testing.T) {
	t.Parallel()
	l := newLedgerRigOn(t, replay.Options{Copies: []string{"d0", "d1"}, Twin: "d0_twin"}, func(o *audit.Options) { o.Twin = "d0_twin" })
	stop := l.begin(t)
	defer func() { stop() }()
	l.Submit(query(exactQuery))
	controlled(t, l.decided(t), analysis.ControlMissing)
	l.until(t, "a warning", func(s view.Status) bool {
		return len(s.Warnings) > 0 && strings.Contains(strings.Join(s.Warnings, "; "), "violations are not controlled with a twin of D0, so that noise which belongs to a copy of the data may look like a leak: d0_twin.people does not exist")
	})
	pgtest.Exec(t, l.dsn, twinSQL)
	l.Submit(query(strings.Replace(exactQuery, "9", "8", 1)))
	entries := l.decided(t)
	if len(entries) != 2 {
		t.Fatalf("%d audits, want 2", len(entries))
	}
	for _, e := range entries {
		if !strings.Contains(e.Summary, "people") || e.Report.Verdict != analysis.Violation {
			t.Errorf("%s: %s", e.Summary, e.Report.Verdict)
		}
	}
	states := map[analysis.ControlState]bool{entries[0].Report.Control.State: true, entries[1].Report.Control.State: true}
	if !states[analysis.ControlPassed] {
		t.Errorf("controls %v, want one that passed", states)
	}
}
