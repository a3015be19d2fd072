package desk

import (
	"encoding/json"
	"math"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// violations are those that audits show, from the first suspicion until a later engine resolves them.
type violations struct {
	*core
	versions    *versions
	acceptances *Acceptances
}

// stand records the violation that a job's report shows. Call it before the report is dropped.
func (v *violations) stand(j *job) {
	if j.worst().Verdict != analysis.Violation {
		return
	}
	if j.life.standing == nil {
		s := &view.Standing{FirstSeen: v.now, FirstEngine: j.life.Engine, Change: v.versions.engineChange(j)}
		if j.state() == view.Decided && !j.decided.IsZero() {
			s.FirstSeen = j.decided
		}
		j.setStanding(s)
	}
	j.life.standing, j.life.Resolved = j.violation(), nil
}

// violation returns the violation that is not resolved, with the figures of the present report if that shows it; nil
// if there is none.
func (j *job) violation() *view.Standing {
	if j.life.standing == nil {
		return nil
	}
	s := *j.life.standing
	if r := j.worst(); r.Verdict == analysis.Violation {
		s.Engine, s.Neighbour, s.Claimed, s.Lower, s.Estimate, s.Trials = j.life.Engine, j.worstNeighbour(), r.Claimed.Epsilon, r.EpsilonLower, r.EpsilonEstimate, r.Trials.D0
		if s.Curve, s.Delta = r.Claimed.Curve, 0; s.Curve != "" {
			s.Delta = r.Claimed.Delta
		}
		s.Missing, s.FloatingPoint = 0, r.FloatingPoint()
		if r.DetectedAt == nil {
			s.Lower = analysis.Float(math.NaN())
		} else {
			s.DetectedAt, s.Threshold = *r.DetectedAt, j.Threshold
		}
	} else {
		s.Missing = max(0, s.Resolving(j.Threshold)-fewest(j.reports))
	}
	return &s
}

func (j *job) setStanding(s *view.Standing) { j.life.standing, j.Open = s, s != nil }

// settleViolation applies the verdict of a job that was just decided to the violation of an earlier engine.
func (v *violations) settleViolation(j *job) {
	v.stand(j)
	s := j.life.standing
	if s == nil || j.worst().Verdict == analysis.Violation {
		return
	}
	fields := []zap.Field{
		zap.String("audit", j.id), zap.String("db.query.summary", j.plan.Summary), zap.String("engine_epoch", j.life.Engine),
		zap.String("violation_engine_epoch", s.Engine), zap.Time("first_seen", s.FirstSeen),
	}
	least, ok := j.refutes(s)
	if !ok {
		v.log(zap.WarnLevel, "a violation stays one: a new audit neither found it again nor had what resolves it, a later engine epoch and trials that would have found its bound, or three times those that had found it",
			append(fields, zap.String("verdict", string(j.worst().Verdict)), zap.Float64("epsilon_lower", float64(s.Lower)), zap.Int("pairs_missing", max(0, s.Resolving(j.Threshold)-fewest(j.reports))))...)
		return
	}
	j.life.Resolved = &view.Resolution{Standing: *s, At: v.now, By: j.life.Engine, MinimalDetectable: analysis.Float(least)}
	j.setStanding(nil)
	v.do(Counted{ResolvedCounter, ""})
	f := v.finding(j, 0, j.worst())
	Describe(&f, j.id, s)
	f.Status, f.Reason = finding.Resolved, j.life.Resolved.String()
	v.alert(f)
}

// fewest returns the smallest number of trials of the reports.
func fewest(reports []analysis.Report) int {
	least := math.MaxInt
	for i := range reports {
		least = min(least, reports[i].Trials.D0)
	}
	return least
}

// refutes reports whether a decided job resolves a violation: its engine is a later one, no neighbour has evidence, and
// the trials would have found the former bound with 90 % probability, or are at least three times those that had found
// it. least is the smallest epsilon that they would have found.
func (j *job) refutes(s *view.Standing) (least float64, ok bool) {
	if j.life.Engine == "" || j.life.Engine == s.Engine {
		return math.NaN(), false
	}
	for i := range j.reports {
		r := &j.reports[i]
		if r.Verdict != analysis.NoEvidence {
			return math.NaN(), false
		}
		if i == 0 || i < len(j.worlds) && j.worlds[i].Schema == s.Neighbour {
			least = float64(r.MinimalDetectable)
		}
	}
	lower := float64(s.Lower)
	if math.IsNaN(lower) {
		lower = math.Inf(1) // deterministic answers: no finite epsilon
	}
	if s.Curve != "" {
		least = math.Inf(1) // it may be about another point of the curve than the bound
	}
	needed := s.Resolving(j.Threshold)
	return least, least <= lower || needed > 0 && fewest(j.reports) >= needed
}

// worstNeighbour returns the neighbour of the worst report; "" if the audit has none yet.
func (j *job) worstNeighbour() string {
	if i := evidence.Worst(j.reports); i < len(j.worlds) {
		return j.worlds[i].Schema
	}
	return ""
}

// storeLife adds to the stored form of a job what concerns the engine.
func (j *job) storeLife(out *ledger.Audit) {
	out.EngineEpoch = j.life.Engine
	s := j.violation()
	if s == nil {
		if j.life.Resolved != nil {
			out.Resolution = j.life.Resolved.String()
		}
		return
	}
	out.Violation, _ = json.Marshal(s) // a struct of plain fields
}

// recallLife gives a job what the ledger has about its violation.
func (j *job) recallLife(row *ledger.Audit) {
	var s view.Standing
	if len(row.Violation) > 0 && json.Unmarshal(row.Violation, &s) == nil {
		j.setStanding(&s)
	}
}

// live adds to an Entry, whose Verdict is set, what concerns the engine.
func (j *job) live(e *view.Entry) {
	e.Engine, e.EngineRestarts, e.Differ = j.life.Engine, j.life.Began, j.life.Differ
	e.Standing, e.Resolved = j.violation(), j.life.Resolved
	if e.Standing != nil {
		e.Verdict = string(analysis.Violation)
	}
}

// alertViolation sends the alert of a violation, unless it is accepted.
func (v *violations) alertViolation(j *job, f alert.Finding) {
	if f.Change == nil {
		f.Change = v.versions.engineChange(j)
	}
	if accepted := v.acceptances.acceptance(j.Key); accepted != nil {
		v.log(zap.InfoLevel, "an accepted violation was found again: no alert is sent", zap.String("audit", f.ID), zap.Float64("epsilon_lower", f.Lower), zap.Time("until", accepted.Until))
		return
	}
	v.alert(f)
}
