package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// fill stores queries of two engines with audits in every state that a list tells apart.
func fill(t *testing.T, l *ledger.Ledger, o ledger.Options) {
	t.Helper()
	number := func(x float64) *float64 { return &x }
	standing := []byte(`{"first_seen":"2026-01-02T03:04:05Z","epsilon_lower":2,"trials":9}`)
	for _, engine := range []string{"e", "another"} {
		e := acquire(t, o, engine)
		for i, a := range []ledger.Audit{
			{State: "", Verdict: ""}, // not begun
			{State: "", Verdict: "", Query: ledger.Query{Claim: &ledger.Claim{Epsilon: 3, Source: "rule"}}},
			{State: "running"},
			{State: "decided", Verdict: "no_evidence", Lower: number(0.25)},
			{State: "decided", Verdict: "no_evidence"},
			{State: "decided", Verdict: "inconclusive"},
			{State: "decided", Verdict: "violation", Lower: number(2)},
			{State: "decided", Verdict: "violation"}, // deterministic answers
			{State: "decided", Verdict: "violation", Lower: number(1.5)},
			{State: "running", Violation: standing},
			{State: "decided", Verdict: "no_evidence", Lower: number(0.5), Violation: standing},
		} {
			q := query()
			q.Key, q.Fingerprint = fmt.Sprintf("%s-key-%d", engine, i), fmt.Sprint("group", i%3)
			q.Summary = []string{"SELECT b", "select a", "SELECT \"Z\"", "SELECT é"}[i%4]
			q.FirstSeen, q.LastSeen = q.FirstSeen.Add(time.Duration(i%5)*time.Hour), q.LastSeen.Add(time.Duration(7-i%4)*24*time.Hour)
			if i%4 == 3 {
				q.Claim = nil
			} else if a.Query.Claim != nil {
				q.Claim = a.Query.Claim
			}
			b := ledger.Batch{Term: e.Term(), Seq: int64(i + 1), Sightings: []ledger.Sighting{{Query: q, User: []string{"ann", "bob"}[i%2], Database: "db", Executions: int64(1 + i%3)}}}
			if err := e.Record(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if a.State == "" {
				continue
			}
			a.Query, a.EngineEpoch, a.Trials, a.EvidenceTrials, a.Progress, a.Processes = q, "v", 10*(i%4), 20*(i%4), []byte{1}, 1
			if err := e.Audits.Save(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			if i == 8 || i == 10 {
				if err := l.Actions.Accept(t.Context(), engine, q.Key, "ann", "known", time.Now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestListAsRead: the ledger selects, sorts and pages in SQL as read.Select does.
func TestListAsRead(t *testing.T) {
	t.Parallel()
	l, o := open(t)
	fill(t, l, o)
	all, err := l.List(t.Context(), read.Filter{})
	if err != nil || len(all.Audits) != 22 || all.Total != 22 || all.Left != 0 {
		t.Fatalf("%d audits, %d in total, %v", len(all.Audits), all.Total, err)
	}
	keys := func(p read.Page) (keys []string) {
		for i := range p.Audits {
			keys = append(keys, p.Audits[i].Key)
		}
		return keys
	}
	statuses := []string{"", read.StatusOpen, read.StatusAccepted, read.StatusNoEvidence, read.StatusInconclusive, read.StatusRunning, read.StatusUntried}
	for _, sort := range []string{read.BySeverity, read.ByBound, read.ByClaim, read.ByTrials, read.ByExecutions, read.ByLast, read.ByFirst, read.BySummary} {
		for _, up := range []bool{false, true} {
			for i, f := range []read.Filter{{}, {Engine: "e"}, {Engine: "nobody"}, {Search: "SELECT A"}, {Search: "e-key-1"}, {Search: "group2"}, {Limit: 5}, {Limit: 5, Offset: 3}, {Offset: 20}, {Offset: 30, Limit: 2}} {
				for k, status := range statuses {
					if i > 0 && k > 2 {
						break
					}
					f.Sort, f.Up, f.Status = sort, up, status
					want, err := read.Select(all.Audits, f)
					if err != nil {
						t.Fatal(err)
					}
					got, err := l.List(t.Context(), f)
					if err != nil || got.Total != want.Total || fmt.Sprint(keys(got)) != fmt.Sprint(keys(want)) {
						t.Errorf("%+v: %v\nledger: %d of %d: %v\nread:   %d of %d: %v", f, err, len(got.Audits), got.Total, keys(got), len(want.Audits), want.Total, keys(want))
					}
				}
			}
		}
	}
	for status, want := range map[string]int{read.StatusOpen: 6, read.StatusAccepted: 4, read.StatusNoEvidence: 4, read.StatusInconclusive: 2, read.StatusRunning: 2, read.StatusUntried: 4} {
		if p, err := l.List(t.Context(), read.Filter{Status: status}); err != nil || p.Total != want {
			t.Errorf("%s: %d audits, want %d; %v", status, p.Total, want, err)
		}
	}
	if p, err := l.List(t.Context(), read.Filter{Search: "ANN"}); err != nil || p.Total != 12 {
		t.Errorf("of a user: %d, %v", p.Total, err)
	}
	if _, err := l.List(t.Context(), read.Filter{Sort: "bound; DROP TABLE queries"}); !errors.Is(err, read.ErrSort) {
		t.Errorf("an unknown order: %v", err)
	}
	if _, err := l.List(t.Context(), read.Filter{Verdict: "violation"}); err == nil {
		t.Error("a filter that the ledger does not have is ignored")
	}
}
