package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// ProfilePoint says that at this epsilon delta is above Delta with the audit's confidence (each point by itself).
type ProfilePoint struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta_lower"`
}

// profileDeltas are the deltas that are tried at every epsilon, from the least: the bound is the last of those that are
// rejected without a gap, which needs no correction for the number tried.
var profileDeltas = []float64{0, .001, .003, .01, .02, .04, .07, .1, .15, .2, .3, .4, .55, .7, .85}

// profileSteps are the epsilons of a finding's profile, in claims (for a claim of 0 absolute). The coarse ones are for
// audits with many columns and groups, in which a process takes long.
var (
	profileSteps = []float64{0, .5, 1, 1.5, 2, 3, 5}
	coarseSteps  = []float64{0, 1, 2}
	coarseDeltas = []float64{0, .01, .1, .4, .85}
)

// profilePoint returns the certified lower bound of delta at an epsilon. It takes time: every delta is a process over
// all trials. A point needs the evidence of the audit's confidence from the trials of the book alone, also where a
// confirmation needs less.
func (v *evidence) profilePoint(epsilon float64, deltas []float64, alpha float64) ProfilePoint {
	p := ProfilePoint{Epsilon: epsilon}
	threshold := max(v.threshold, -math.Log(alpha))
	for _, d := range deltas {
		q := &book.Process{Null: eprocess.NewNull(epsilon, d)}
		if v.replay(q, &v.book); q.Highest < threshold {
			break
		}
		p.Delta = d
	}
	return p
}

// AddProfile adds the certified privacy profile to the finding of a report of this audit, up to the first epsilon at
// which no delta is certified. It takes up to seconds, and does nothing without a certified finding, during a
// measurement, and for a second time.
func (a *Audit) AddProfile(r *Report) {
	if !r.takesProfile(a.observed.pairs) || !a.Decided() {
		return
	}
	steps, deltas := profileSteps, profileDeltas
	if a.evidence.book.Places > fewPlaces {
		steps, deltas = coarseSteps, coarseDeltas
	}
	unit := a.here().Epsilon
	if unit == 0 {
		unit = 1
	}
	var profile []ProfilePoint
	for _, step := range steps {
		p := a.evidence.profilePoint(step*unit, deltas, a.opts.alpha())
		if profile = append(profile, p); p.Delta == 0 && step >= 1 {
			break
		}
	}
	a.explained.setProfile(r, &a.observed, a.here(), profile)
}

// RestoreProfile adds the profile that AddProfile has added to the same report of the audit before it was stored. It
// does nothing where AddProfile would not.
func (a *Audit) RestoreProfile(r *Report, profile []ProfilePoint) {
	if len(profile) > 0 && r.takesProfile(a.observed.pairs) && a.Decided() {
		a.explained.setProfile(r, &a.observed, a.here(), profile)
	}
}

// takesProfile reports whether a report after a number of pairs has a finding that a profile can be added to.
func (r *Report) takesProfile(pairs int) bool {
	return r.Finding != nil && r.Finding.HowBad.Basis == Certified && len(r.Finding.HowBad.Profile) == 0 && r.Trials.D0 == pairs
}
