package app

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// Overview is what the first page shows of one engine.
type Overview struct {
	Engine, Version string
	Parts           []Part // is it working
	Found           []Found
	Audits, Decided int // in memory
	Sessions        int64
	Queries         float64 // distinct DP queries, estimated
	Audited         float64 // share of Queries with an audit
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

// EngineNames returns the names of the engines.
func (r *Relay) EngineNames() []string {
	var names []string
	for _, e := range r.engines {
		names = append(names, e.name())
	}
	return names
}

// Version returns a number that changes when the status of an engine does.
func (r *Relay) Version() uint64 {
	var sum uint64
	for _, e := range r.engines {
		sum = 31*sum + e.shown.version(e)
	}
	return sum
}

// Snapshots returns the status of an engine, or of all with the name "". Without values, no text in it holds any.
func (r *Relay) Snapshots(engine string, values bool) ([]*Snapshot, error) {
	if engine != "" {
		e, err := r.engine(engine)
		if err != nil {
			return nil, err
		}
		s, err := e.shown.snapshot(e, values)
		return []*Snapshot{s}, err
	}
	var all []*Snapshot
	for _, e := range r.engines {
		s, err := e.shown.snapshot(e, values)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Overviews returns what the first page shows of an engine, or of all with the name "".
func (r *Relay) Overviews(engine string, values bool) ([]Overview, error) {
	snapshots, err := r.Snapshots(engine, values)
	if err != nil {
		return nil, err
	}
	var all []Overview
	for _, s := range snapshots {
		all = append(all, s.overview())
	}
	return all, nil
}

func (s *Snapshot) overview() Overview {
	o := Overview{Engine: s.relay.Engine, Version: s.relay.Version, Parts: s.parts(), Sessions: int64(s.relay.Proxy.OpenSessions)}
	for i := range o.Parts {
		o.Parts[i].Text = printable(o.Parts[i].Text)
	}
	if a := s.auditor; a != nil {
		o.Audits, o.Queries, o.Audited = len(a.Audits), a.Coverage.Queries, a.Coverage.AuditedQueries
	}
	for i := range s.audits {
		a := &s.audits[i]
		if a.Report != nil && a.Report.Verdict != "" {
			o.Decided++
		}
		if a.violation() {
			o.Found = append(o.Found, found(a, s.relay.Engine))
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

func found(a *AuditRow, engine string) Found {
	r := a.report()
	f := Found{
		ID: a.ID, Engine: engine, Summary: printable(a.Summary), User: printable(a.User), Claim: r.Claimed.Epsilon, Bound: r.EpsilonLower,
		Deterministic: boundText(r) == "deterministic", FirstSeen: a.FirstSeen, LastSeen: a.LastSeen, Executions: a.Seen,
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

// shownChanges is the number of changes on the first page.
const shownChanges = 20

// recent are the latest changes, which open pages share.
type recent struct {
	mu  sync.Mutex // guards the following, and keeps two pages from reading the ledger
	at  time.Time
	all []ledger.Change
	err error
}

// Changes returns the latest changes of the audits of an engine, or of all with the name "", from the ledgers. They may be some seconds old.
func (r *Relay) Changes(ctx context.Context, engine string) ([]ledger.Change, error) {
	r.recent.mu.Lock()
	defer r.recent.mu.Unlock()
	if time.Since(r.recent.at) > detailsAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerTimeout) // the result is for other pages as well
		defer cancel()
		r.recent.all, r.recent.err = readChanges(ctx, *r.current.Load())
		r.recent.at = time.Now()
	}
	all := slices.DeleteFunc(slices.Clone(r.recent.all), func(c ledger.Change) bool { return engine != "" && c.Engine != engine })
	return all[:min(len(all), shownChanges)], r.recent.err
}

func readChanges(ctx context.Context, c config.Config) ([]ledger.Change, error) {
	var all []ledger.Change
	for _, one := range ledgers(c) {
		l, err := openStored(ctx, one)
		if err != nil {
			return nil, err
		}
		changes, err := l.Changes(ctx, 5*shownChanges)
		l.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	slices.SortStableFunc(all, func(x, y ledger.Change) int { return y.At.Compare(x.At) })
	for i := range all {
		all[i].Summary = printable(all[i].Summary)
	}
	return all, nil
}
