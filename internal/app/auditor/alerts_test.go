package auditor

import (
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// TestConditions: a condition of the auditor is reported once when it has lasted long enough, and once when it is over.
func TestConditions(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Audit.Workers = 0
	all := conditions(c)
	share := func(v float64) *float64 { return &v }
	healthy := func() *view.Status {
		return &view.Status{Workers: make([]view.WorkerState, 1), Ledger: &view.LedgerState{Restored: true}, Coverage: view.Coverage{Queries: 100, AuditedQueries: share(0.9)}}
	}
	for component, break1 := range map[string]func(*view.Status){
		"shadow":  func(s *view.Status) { s.Shadow = "away" },
		"ledger":  func(s *view.Status) { s.Ledger.Trouble = "away" },
		"workers": func(s *view.Status) { s.Workers = nil },
		"queries": func(s *view.Status) { s.Coverage.AuditedQueries = share(0.4) },
	} {
		t.Run(component, func(t *testing.T) {
			t.Parallel()
			var one condition
			for _, x := range all {
				if x.component == component {
					one = x
				}
			}
			bad := healthy()
			break1(bad)
			at := time.Now()
			for i, step := range []struct {
				status  *view.Status
				after   time.Duration
				changed bool
				over    bool
			}{
				{healthy(), 0, false, true},
				{bad, time.Second, false, false},
				{healthy(), one.after, false, true}, // it did not last
				{bad, one.after + time.Second, false, false},
				{bad, 2*one.after + time.Second, true, false},
				{bad, 3 * one.after, false, false},
				{healthy(), 4 * one.after, true, true},
				{healthy(), 5 * one.after, false, true},
			} {
				f, changed := one.look(step.status, at.Add(step.after))
				if changed != step.changed || (f.Status == finding.Resolved) != step.over || f.Component != component || f.Condition == "" {
					t.Errorf("step %d: %+v, changed %t", i, f, changed)
				}
			}
			bad.Ledger.Holder = &ledger.Process{} // another process audits the engine, and reports it
			for _, after := range []time.Duration{6, 8} {
				if f, changed := one.look(bad, at.Add(after*one.after)); changed || f.Status == finding.Resolved {
					t.Errorf("a process that only records: %+v, changed %t", f, changed)
				}
			}
		})
	}
	few := healthy()
	few.Coverage = view.Coverage{Queries: 3}
	for i := range all {
		if f, _ := all[i].look(few, time.Now()); f.Status != finding.Resolved {
			t.Errorf("%s: %+v for an auditor that has seen few queries", all[i].component, f)
		}
	}
	c.Alerts.Coverage.Share = 0
	if n := len(conditions(c)); n != len(all)-1 {
		t.Errorf("%d conditions although the one of the coverage is off", n)
	}
}

// TestStanding: a violation in the status has the same alert as the finding that the auditor reports.
func TestStanding(t *testing.T) {
	t.Parallel()
	style := setup.AlertStyle(config.Default())
	e := &read.Audit{ID: "3f9c", Group: "g", Summary: "s", User: "u", Database: "d"}
	got := style.Message(standing(e, &read.Standing{Claimed: 0.5, Lower: 3, FirstEngine: "e1", Neighbour: "d1"}), time.Now())
	want := style.Message(alert.Finding{Kind: finding.Violation, ID: "3f9c", Epsilon: 0.5, Lower: 3, EngineEpoch: "e1"}, time.Now())
	if got.ID != want.ID || got.Subject != want.Subject || got.Severity != finding.Critical || got.Severity != want.Severity || got.Title != want.Title {
		t.Errorf("%+v, want %+v", got, want)
	}
}
