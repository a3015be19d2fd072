package evidence

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// LeftOut is what replay.LeftOut says of a neighbour.
type LeftOut struct{ Why, Reader string }

// SetLeftOut notes of each neighbour whether the query reads the same rows on it as on D0; nil = that is not known. Such
// a neighbour needs no trials, unless something may read more than was compared.
func (s *observed) SetLeftOut(all []LeftOut) { s.leftOut = all }

// vacuous reports whether trials cannot show a difference between D0 and a neighbour.
func (s *observed) vacuous(i int) bool {
	return s.leftOut != nil && s.leftOut[i].Why != "" && s.leftOut[i].Reader == ""
}

// withLeftOut adds to the report on a neighbour that the query reads the same on it as on D0.
func (s *observed) withLeftOut(r analysis.Report, i int) analysis.Report {
	switch {
	case s.leftOut == nil || s.leftOut[i].Why == "" || r.Verdict == analysis.Violation:
	case s.vacuous(i):
		none := analysis.Float(math.NaN())
		r.Verdict, r.ReasonCode, r.Deterministic = analysis.Inconclusive, analysis.Vacuous, nil
		r.MinimalDetectable, r.MinimalFactor, r.MinimalInTenth = none, 0, none
		r.Reason = "vacuous: without noise the query reads the same on D0 and on this neighbour (" + s.leftOut[i].Why +
			"), so no trial could have found anything and none was run: choose a person who takes part"
	default:
		r.Warnings = append(r.Warnings, withheld.Sprintf("what was evaluated without noise is the same on D0 and on this neighbour (%s): the trials could show only what %s reads besides",
			s.leftOut[i].Why, s.leftOut[i].Reader))
	}
	return r
}
