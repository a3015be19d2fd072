// Package turn runs the trials of one turn of an audit.
//
// A Turn is a value: everything that the trials need is in it. The evidence moves into the Turn and comes back in its
// Outcome, so that nothing else has it meanwhile, and a turn can run in any process. A Runner keeps between two turns
// only what can be made again: sessions and the tables of hoisted queries.
package turn

import (
	"errors"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/trial"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/hoisting"
)

// Kind is what a turn is for.
type Kind uint8

// The kinds of turns.
const (
	First   Kind = iota // the first trials, which are few
	Trials              // further trials, until there is a verdict
	Measure             // trials with which the bound of a violation grows
	Watch               // a few trials of a decided audit, for its change detector
)

// KindOf returns the kind of a turn that is no Watch, with the number of turns that the audit has had with it.
func KindOf(measuring bool, turns int) Kind {
	switch {
	case measuring:
		return Measure
	case turns <= 1:
		return First
	}
	return Trials
}

// Turn is one turn of an audit.
type Turn struct {
	Key       string // of the audit
	ID        string // its first digits, for messages
	Kind      Kind
	Number    int // turns of the present evidence, this one included: the order of the trials depends on it
	Beginning int // how often the evidence of the audit has begun

	Query      capture.Query
	Settings   map[string]string // with which the query runs
	SearchPath []string
	Beside     []string // see replay.Statement
	Worlds     []World  // one per neighbour
	Places     []int    // of D0 and the neighbour of a control audit, see replay.Statement; nil = this is another audit
	Calls      engine.Calls
	Copies     string // version of the copies of the evidence
	Engine     string // version of the engine of the evidence; "" = it is not compared
	Source     string // of the claim, for the reports

	Evidence *evidence.Evidence // nil in a Watch
	Seed     uint64             // of the order of the trials of the evidence; below 2^53
	Hoist    bool               // trials may reuse the part that is the same in all of them

	Claim analysis.Claim   // of a Watch
	Terms analysis.Options // of a Watch
	State []byte           // of the change detector of a Watch; nil = it begins
}

// Hooks are called during a turn, by its goroutine.
type Hooks struct {
	// Pressing reports whether a new query waits: the turn then ends as soon as it is long enough.
	Pressing func() bool
	Least    time.Duration // minimum of a turn that is not a first one, if nothing is pressing
	Advanced func(Advance) // takes the present results; may be nil
}

// Advance is what is known during a turn, or at its end.
type Advance struct {
	Reports    []analysis.Report // one per neighbour; nil = as before
	Confirming bool              // fresh trials must control or confirm the violation that trials show, or have done so
	Suspected  float64           // the wealth to be confirmed, at the beginning of a confirmation in this turn
	Hoisting   *hoisting.Report
}

// Outcome is the result of a turn. Only a verdict in its evidence, or Broken, decides an audit.
type Outcome struct {
	Evidence *evidence.Evidence // nil after a Restart, a Stop, a Watch, or a panic
	Advance
	Took    time.Duration
	Fresh   bool     // at the end the copies and the engine were those of the evidence
	Restart *Restart // why the evidence must not be used
	Stop    error    // a measurement ends; what it had before this turn is valid
	Broken  error    // a panic: the audit is set aside
	Trouble error    // the databases are unavailable or do not fit the query; another turn may succeed
	Watch   *Watched
}

// Restart is why evidence is dropped.
type Restart struct {
	Environment *environment.Environment // in which the copies or the engine are others; nil = they are not
}

// Watched is the result of a Watch.
type Watched struct {
	State    []byte // of the change detector
	Rounds   int    // since the verdict
	Evidence float64
	Alarm    bool
	Reset    error // why the stored state could not be used; nil = it could
}

// ErrInternal is what is shown of a turn that panicked.
var ErrInternal = errors.New("internal error: see the log")

// errReplaced ends a measurement.
var errReplaced = errors.New("the copies or the engine were replaced")

// statement returns the query for a replay on D0 and every neighbour.
func (t *Turn) statement(hoist *replay.Hoisting, varyText bool) replay.Statement {
	s := replay.Statement{
		Worlds: []string{t.Worlds[0].SQL.D0}, Params: t.Query.Params, Settings: t.Settings, SearchPath: t.SearchPath,
		Simple: t.Query.Protocol == capture.Simple, Named: t.Query.Named, Hoist: hoist, Places: t.Places, Beside: t.Beside,
	}
	if t.Evidence != nil {
		s.Separate = trial.Separation(t.Evidence, varyText)
	}
	for i := range t.Worlds {
		s.Worlds = append(s.Worlds, t.Worlds[i].SQL.D1)
	}
	if len(t.Query.Then) > 0 {
		t.ofSequence(&s, varyText)
	}
	return trial.OnWorlds(s, t.Evidence, t.twin())
}

// controlled reports whether a suspicion has a control in an environment: the twin is there, or in a control audit,
// whose neighbour is the twin, the guard.
func (t *Turn) controlled(e *environment.Environment) bool {
	there := e.Twin
	if t.Places != nil {
		there = e.Guard
	}
	return there && t.twin() != nil
}

// twin returns the texts on the twin of D0, or the guard.
func (t *Turn) twin() []string { return t.Worlds[0].Twin }

// ofSequence makes s the statements of a sequence. All trials are separate: see docs/statistics.md.
func (t *Turn) ofSequence(s *replay.Statement, varyText bool) {
	for i := range t.Worlds[0].Steps[0] {
		q := t.Query.Step(i)
		step := replay.Step{Worlds: []string{t.Worlds[0].Steps[0][i]}, Params: q.Params, Simple: q.Protocol == capture.Simple, Named: q.Named}
		for w := range t.Worlds {
			step.Worlds = append(step.Worlds, t.Worlds[w].Steps[1][i])
		}
		if i == 0 {
			s.Worlds = step.Worlds
			continue
		}
		s.Then = append(s.Then, step)
	}
	if s.Hoist = nil; s.Separate == nil {
		s.Separate = &replay.Separation{VaryText: varyText}
	}
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

// same reports whether the evidence belongs to an environment.
func (t *Turn) same(e *environment.Environment) bool {
	if t.Copies != e.Copies {
		return false
	}
	if t.Engine == "" {
		return true
	}
	now := e.Version(t.Calls)
	return now == "" || now == t.Engine
}
