package status

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Overview is what the first page shows of one engine.
type Overview struct {
	Engine, Version string
	Parts           []Part // is it working
	Found           []Found
	Audits, Decided int // in memory
	Sessions        int64
	Queries         float64           // distinct DP queries, estimated
	Audited         float64           // share of Queries whose audit has or had trials
	Alerts          *view.AlertsState // nil = not known
}

// Open returns the number of violations that are not accepted.
func (o *Overview) Open() (n int) {
	for i := range o.Found {
		if o.Found[i].AcceptedUntil.IsZero() {
			n++
		}
	}
	return n
}

// Found is an open violation.
type Found struct {
	ID, Engine, Summary, User string
	Cause                     string // the likeliest, in words; "" = not known
	Claim, Bound              analysis.Float
	Deterministic             bool
	FirstSeen, LastSeen       time.Time
	Executions                uint64
	AcceptedUntil             time.Time // zero = not accepted
}

// Overview returns what the first page shows of the engine.
func (s *Snapshot) Overview() Overview {
	o := Overview{Engine: s.Relay.Engine, Version: s.Relay.Version, Parts: s.parts(), Sessions: int64(s.Relay.Proxy.OpenSessions)}
	for i := range o.Parts {
		o.Parts[i].Text = show.Printable(o.Parts[i].Text)
	}
	if a := s.auditor; a != nil {
		o.Audits, o.Queries, o.Audited, o.Alerts = len(a.Audits), a.Coverage.Queries, a.Coverage.AuditedQueries, a.Alerts
	}
	for i := range s.Audits {
		a := &s.Audits[i]
		if a.Report != nil && a.Report.Verdict != "" {
			o.Decided++
		}
		if a.Violation() {
			o.Found = append(o.Found, found(a, s.Relay.Engine))
		}
	}
	slices.SortStableFunc(o.Found, func(x, y Found) int { return cmp.Compare(y.severity(), x.severity()) })
	return o
}

// severity orders violations: those that are not accepted first, then by how far the bound exceeds the claim.
func (f *Found) severity() float64 {
	s := float64(f.Bound) - float64(f.Claim)
	if f.Deterministic || math.IsNaN(s) {
		s = 1e6
	}
	if !f.AcceptedUntil.IsZero() {
		s -= 1e9
	}
	return s
}

func found(a *read.Audit, engine string) Found {
	r := a.Result()
	f := Found{
		ID: a.ID, Engine: engine, Summary: show.Printable(a.Summary), User: show.Printable(a.User), Claim: r.Claimed.Epsilon, Bound: r.EpsilonLower,
		Deterministic: read.BoundText(r) == "deterministic", FirstSeen: a.FirstSeen, LastSeen: a.LastSeen, Executions: a.Seen,
	}
	if s := a.Standing; s != nil && r.Verdict != analysis.Violation {
		f.Bound, f.Deterministic = s.Lower, math.IsNaN(float64(s.Lower))
	}
	if r.Finding != nil && len(r.Finding.Causes) > 0 {
		f.Cause = r.Finding.Causes[0].Name
	}
	if c := a.Accepted; c != nil {
		f.AcceptedUntil = c.Until
	}
	return f
}
