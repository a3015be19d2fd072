package desk

import (
	"math"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
)

// Describe gives a finding about an audit's query what is known of its violation.
func Describe(f *alert.Finding, id string, s *view.Standing) {
	f.ID, f.Kind = id, finding.OfViolation(float64(s.Lower), s.FloatingPoint)
	f.Epsilon, f.Lower, f.Estimate = float64(s.Claimed), float64(s.Lower), float64(s.Estimate)
	if f.Kind == finding.Deterministic {
		f.Estimate, f.Odds = math.NaN(), math.NaN()
	}
	if s.Curve != "" {
		f.Curve, f.Delta = s.Curve, s.Delta
	}
	f.Resolving = s.Resolving(s.Threshold)
	f.Neighbour, f.TrialsD0, f.TrialsD1, f.EngineEpoch, f.Change, f.Found = s.Neighbour, s.Trials, s.Trials, s.FirstEngine, s.Change, s.FirstSeen
}

// sameBase reports whether two Snapshots differ in functions alone.
func sameBase(x, y *engine.Snapshot) bool { return x.Epoch(engine.Calls{}) == y.Epoch(engine.Calls{}) }

// violates reports whether the job's query has a violation that is not resolved.
func (j *job) violates() bool { return j.Phase() == schedule.Violation || j.Open }

// ShortID returns the id of an audit with a key.
func ShortID(key string) string {
	if query, control := ledger.ControlOf(key); control {
		return ledger.ControlKey(ShortID(query))
	}
	return key[:min(12, len(key))]
}
