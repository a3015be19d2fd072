package read_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/read"
)

// audit returns an audit with a claim of 1, a bound, and an execution at an hour.
func audit(key string, verdict analysis.Verdict, bound float64, hour int) read.Audit {
	r := analysis.Refused(analysis.Claim{Epsilon: 1}, 0, "")
	r.Verdict, r.EpsilonLower = verdict, analysis.Float(bound)
	return read.Audit{ID: key, Key: key, State: read.Decided, Verdict: string(verdict), Report: &r, LastSeen: time.Unix(int64(hour)*3600, 0)}
}

func keys(p read.Page) (keys []string) {
	for i := range p.Audits {
		keys = append(keys, p.Audits[i].Key)
	}
	return keys
}

// TestSelect: the orders that are not in the ledger, filters by state and verdict, and pages by cursor.
func TestSelect(t *testing.T) {
	t.Parallel()
	accepted, deterministic, waiting, running := audit("c", analysis.Violation, 9, 4), audit("d", analysis.Violation, math.NaN(), 3), audit("w", "", math.NaN(), 8), audit("r", "", math.NaN(), 7)
	accepted.Accepted = &read.Accepted{}
	deterministic.Report.Deterministic = &analysis.Deterministic{}
	waiting.State, waiting.WaitingFor, waiting.Report.Trials.D0 = read.Waiting, &read.WaitingFor{Reason: "retry"}, 50
	running.State, running.Report.Trials.D0 = read.Running, 5
	former := audit("f", analysis.NoEvidence, 0.1, 2)
	former.Standing, former.Verdict = &read.Standing{Lower: 3}, string(analysis.Violation)
	all := []read.Audit{audit("a", analysis.Violation, 2, 1), audit("b", analysis.NoEvidence, 0.5, 9), accepted, deterministic, former, waiting, running}
	for _, tc := range []struct {
		f    read.Filter
		want string
	}{
		{read.Filter{Sort: read.Recent}, "[c d f a b w r]"},
		{read.Filter{Sort: read.ByExcess, Verdict: "violation"}, "[d f a c]"},
		{read.Filter{Sort: read.Pending, State: "running"}, "[r]"},
		{read.Filter{Sort: read.Pending, Status: read.StatusRunning}, "[r w]"},
		{read.Filter{Sort: read.ByBound, Up: true, Limit: 3}, "[f b a]"},
		{read.Filter{Status: read.StatusOpen, Sort: read.ByBound, Offset: 1}, "[f d]"},
		{read.Filter{Engine: "none"}, "[]"},
	} {
		if p, err := read.Select(all, tc.f); err != nil || fmt.Sprint(keys(p)) != tc.want {
			t.Errorf("%+v: %v, %v; want %s", tc.f, keys(p), err, tc.want)
		}
	}
	var paged []string
	for f := (read.Filter{Sort: read.Recent, Limit: 3}); ; {
		p, err := read.Select(all, f)
		if err != nil || p.Left != max(0, len(all)-len(paged)-3) {
			t.Fatalf("%d left, %v", p.Left, err)
		}
		if paged = append(paged, keys(p)...); p.Next == "" {
			break
		}
		f.Cursor = p.Next
	}
	if fmt.Sprint(paged) != "[c d f a b w r]" {
		t.Errorf("pages: %v", paged)
	}
	if all[0].Key != "a" || all[6].Key != "r" {
		t.Error("Select has changed the order of its argument")
	}
	if _, err := read.Select(all, read.Filter{Sort: "x"}); err != read.ErrSort { //nolint:errorlint // not wrapped
		t.Errorf("an unknown order: %v", err)
	}
	if got := all[4].ListStatus(); got != string(finding.Open) {
		t.Errorf("a violation that the present evidence does not show: %s", got)
	}
}
