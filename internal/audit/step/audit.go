package step

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/hoisting"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Audit is an audit of one query, between two steps.
type Audit struct {
	Key       string
	SQL       string           // as it was captured, for who looks at hoisting
	Statement replay.Statement // on D0 and each neighbour, or in a control audit, which has places, on D0 and its twin
	Twin      []string         // the texts of the statement and of those of its Then on the twin, in a control audit on the guard; nil = there is none
	VaryText  bool             // the trials of a confirmation differ in a comment: see replay.Separation
	Measure   int              // rounds after a violation, with which its bound grows; 0 = none, unless that has begun
	Source    string           // of the claim, for the reports

	Beginning int    // how often the evidence has begun
	Copies    string // version of the copies of the evidence
	Engine    string // version of the engine of the evidence; "" = it is not compared
	Calls     engine.Calls
	Evidence  *evidence.Evidence // nil if it is watched
	Doubted   bool               // it was found that trials show a violation, and not yet that fresh ones did not
	Watch     *evidence.Watch    // of a decided audit; nil = it is not watched
	Seed      uint64             // of the order of the trials of the next step

	Hoist   *replay.Hoisting // nil = trials run the whole query
	Resting Trials           // with open sessions, for the next step; nil = there are none
	Renewed *Worlds          // made for the present suspicion; nil = its trials run on the copies
}

// Worlds are other copies of the data, with the statement of an audit on them.
type Worlds struct {
	Player    Player
	Statement replay.Statement
	Twin      []string
}

// Statement returns the query of a plan for a replay on D0 and every neighbour.
func Statement(q capture.Query, plan *rewrite.Plan, worlds []World) replay.Statement {
	s := replay.Statement{
		Worlds: []string{worlds[0].SQL.D0}, Params: q.Params, Settings: plan.Settings, SearchPath: plan.SearchPath,
		Simple: q.Protocol == capture.Simple, Named: q.Named, Beside: plan.Beside,
	}
	for i := range worlds {
		s.Worlds = append(s.Worlds, worlds[i].SQL.D1)
	}
	for i := range worlds[0].Steps[0] { // of a sequence
		q := q.Step(i)
		next := replay.Step{Worlds: []string{worlds[0].Steps[0][i]}, Params: q.Params, Simple: q.Protocol == capture.Simple, Named: q.Named}
		for w := range worlds {
			next.Worlds = append(next.Worlds, worlds[w].Steps[1][i])
		}
		if i == 0 {
			s.Worlds = next.Worlds
			continue
		}
		s.Then = append(s.Then, next)
	}
	return s
}

// statement returns the statement of the next trials. All trials of a sequence are separate: see docs/statistics.md.
func (a *Audit) statement() replay.Statement {
	e, s, twin := a.Evidence, a.Statement, a.Twin
	if a.Renewed != nil {
		s, twin = a.Renewed.Statement, a.Renewed.Twin
	}
	switch {
	case e != nil && e.Separate():
		s.Separate = &replay.Separation{VaryText: a.VaryText, Skip: e.Settled()}
	case len(s.Then) > 0:
		s.Separate = &replay.Separation{VaryText: a.VaryText && e != nil}
	}
	if s.Hoist = a.Hoist; len(s.Then) > 0 || e == nil {
		s.Hoist = nil
	}
	if e == nil || !e.Controlling() && !e.TwinInPlace() {
		return s
	}
	places := s.Places
	if places == nil {
		for i := range s.Worlds {
			places = append(places, i)
		}
	}
	s.Places = pick(e, places, slices.Max(places)+1) // the twin, or the guard after it, follows
	s.Worlds, s.Then, s.Hoist = pick(e, s.Worlds, twin[0]), slices.Clone(s.Then), nil
	for i := range s.Then {
		s.Then[i].Worlds = pick(e, s.Then[i].Worlds, twin[1+i])
	}
	return s
}

// pick returns of the worlds those of a control or of a confirmation after it.
func pick[T any](e *evidence.Evidence, worlds []T, twin T) []T {
	if e.Controlling() {
		return []T{worlds[0], twin}
	}
	return append([]T{twin}, worlds[1:]...)
}

// controlled reports whether a suspicion has a control in an environment: the twin is there, or in a control audit,
// whose neighbour is the twin, the guard.
func (a *Audit) controlled(e *environment.Environment) bool {
	there := e.Twin
	if a.Statement.Places != nil {
		there = e.Guard
	}
	return there && a.Twin != nil
}

// same reports whether the evidence belongs to an environment.
func (a *Audit) same(e *environment.Environment) bool {
	if a.Copies != e.Copies {
		return false
	}
	if a.Engine == "" {
		return true
	}
	now := e.Version(a.Calls)
	return now == "" || now == a.Engine
}

// Progress is what is known of an audit.
type Progress struct {
	Reports  []analysis.Report // one per neighbour; nil = as before
	Hoisting *hoisting.Report
}

// Progress returns what is known of an audit that is not watched, with reports if what the evidence shows is verified.
func (a *Audit) Progress(verified bool) (p Progress) {
	if verified {
		p.Reports = Reports(a.Evidence, a.Source, true)
	}
	if a.Hoist != nil {
		report := a.Evidence.Hoisting(a.Hoist.Report(), evidence.Worst(p.Reports))
		p.Hoisting = &report
	}
	return p
}

// Reports returns the reports of all neighbours of evidence, with the source of the claim, and with profiles if
// profiled is set.
func Reports(e *evidence.Evidence, source string, profiled bool) []analysis.Report {
	reports := make([]analysis.Report, e.Neighbours())
	for i := range reports {
		reports[i] = e.Report(i)
		if reports[i].Claimed.Source = source; profiled {
			e.Audit(i).AddProfile(&reports[i])
		}
	}
	return reports
}
