package audit

import (
	"math"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
)

// Describe gives a finding about an audit's query what is known of its violation.
func Describe(f *alert.Finding, id string, s *view.Standing) {
	f.ID, f.Kind = id, finding.OfViolation(float64(s.Lower))
	f.Epsilon, f.Lower, f.Estimate = float64(s.Claimed), float64(s.Lower), float64(s.Estimate)
	if f.Kind == finding.Deterministic {
		f.Estimate, f.Odds = math.NaN(), math.NaN()
	}
	f.Resolving = s.Resolving(s.Threshold)
	f.Neighbour, f.TrialsD0, f.TrialsD1, f.EngineEpoch, f.Change, f.Found = s.Neighbour, s.Trials, s.Trials, s.FirstEngine, s.Change, s.FirstSeen
}

// engineChanged is a change of the engine.
type engineChanged struct {
	finding.Change
	all bool // it concerns all queries: a version, a setting, a deploy
}

// mostChanges bounds the changes of the engine that are remembered.
const mostChanges = 32

// noteChange remembers a change of the engine.
func (e *engines) noteChange(at time.Time, functions []string, label string, all bool) {
	e.changes = append(e.changes, engineChanged{finding.Change{At: at, Functions: functions, Label: label}, all})
	if n := len(e.changes); n > mostChanges {
		e.changes = slices.Delete(e.changes, 0, n-mostChanges)
	}
}

// sameBase reports whether two Snapshots differ in functions alone.
func sameBase(x, y *engine.Snapshot) bool { return x.Epoch(engine.Calls{}) == y.Epoch(engine.Calls{}) }

// engineChange returns the last change of the engine that concerns a job's query; nil if this process has noticed
// none.
func (d *desk) engineChange(j *job) *finding.Change {
	shadow := d.environment.Shadow
	if shadow == nil || len(d.engines.changes) == 0 {
		return nil
	}
	called := shadow.Called(d.callsOf(&j.life, j.plan))
	var last *finding.Change
	for _, c := range slices.Backward(d.engines.changes) {
		f := slices.DeleteFunc(slices.Clone(c.Functions), func(name string) bool { return !slices.Contains(called, name) })
		switch {
		case last != nil && last.At.Sub(c.At) > sameDeploy:
			return last
		case len(f) > 0:
			change := finding.Change{At: c.At, Functions: f[:min(len(f), shownFunctions)], Label: c.Label}
			if last != nil {
				change.Label = last.Label
			}
			return &change
		case c.all && last == nil:
			last = &c.Change
		}
	}
	return last
}

// sameDeploy is the time before a change without functions, such as the label of a deploy, in which changed functions
// belong to it.
const sameDeploy = 5 * time.Minute

// violates reports whether the job's query has a violation that is not resolved.
func (j *job) violates() bool { return j.Phase() == schedule.Violation || j.Open }
