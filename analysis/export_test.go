package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
)

// SkipBound makes an audit decide about the claim alone: no bound is computed below it.
func SkipBound(a *Audit) { a.evidence.front = a.evidence.claimAt }

// RestoreBody reads a state without its head and checksum.
func RestoreBody(body []byte) (*Audit, error) {
	return restored(body)
}

// StateHead is the length of what stands before the body.
const StateHead = len(stateMagic) + 1

// Bets returns the log factors, per world and class, that every component of the mixtures stakes on estimates of the
// classes' probabilities.
func Bets(epsilon, delta float64, p, q [3]float64, live [3]bool) (all [][2][3]float64) {
	for _, noClaim := range [...]bool{false, true} {
		m := score.NewMixtures(noClaim)
		for _, c := range append(append(eprocess.Mixture{}, m[score.ShiftPrior]...), m[score.SupportPrior]...) {
			f := c.FactorsOf(eprocess.NewNull(epsilon, delta), p, q, live)
			all = append(all, [2][3]float64{f[0], f[1]})
		}
	}
	return all
}

// BinBet returns the log factors, per world and bin, of the bet on every bin with the working alternative (p, q).
func BinBet(epsilon, delta float64, p, q []float64) (f [2][]float64) {
	l, k := event.Laws{p, q}, len(p)
	odds := make([]float64, 2*k)
	l.Place(eprocess.NewNull(epsilon, delta), odds)
	return [2][]float64{odds[:k], odds[k:]}
}

// Inflate returns a function that, called after every pair, makes all bets of a new block against the claim gain too
// much: every factor on one world's outcomes is multiplied by e^by.
func Inflate(a *Audit, by float64) func() {
	var known *book.Epoch
	return func() {
		if a.evidence.epoch == known {
			return
		}
		known = a.evidence.epoch
		for i := range a.evidence.lead.Bets {
			b := &a.evidence.lead.Bets[i]
			for j := range b.Factors {
				for c := range b.Factors[j][0] {
					b.Factors[j][0][c] += by
				}
			}
			for j := range len(b.Odds) / 2 {
				b.Odds[j] += by
			}
		}
	}
}

// LogSumExp and LogAdd let what they do with wealth that is no number be checked from outside.
var (
	LogSumExp = eprocess.LogSumExp
	LogAdd    = eprocess.LogAdd
)

// Spoil makes one place of the wealth against the claim, and one of the climbing bound's, no number.
func Spoil(a *Audit) {
	for _, p := range []*book.Process{&a.evidence.lead.Process, a.evidence.climber} {
		if len(p.Logw) > 0 {
			p.Logw[0] = math.NaN()
		}
	}
}

// CertainlyDependent reports whether trials are dependent at DependenceErrorRate.
func CertainlyDependent(a *Audit) bool { return a.observed.certainlyDependent() }

// BoundNow returns the greatest epsilon of the grid that the evidence now rejects together with all below it.
func BoundNow(a *Audit) (bound float64) {
	a.look()
	for i, epsilon := range a.evidence.grid {
		w := a.evidence.lead.Latest
		if i != a.evidence.claimAt {
			p := &book.Process{Null: eprocess.NewNull(epsilon, a.claim.Delta), Below: i < a.evidence.claimAt}
			a.evidence.replay(p, &a.evidence.book)
			if w = p.Total(); p.Below {
				w = eprocess.LogAdd(w, a.evidence.lead.Latest) - math.Ln2
			}
		}
		if !(w >= -math.Log(1-a.opts.Confidence)) {
			break
		}
		bound = epsilon
	}
	return bound
}
