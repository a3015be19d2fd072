package analysis

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/internal/curve"
)

// growth returns the most evidence per pair, in nats, that a Laplace mechanism of the given true epsilon yields
// against a null: the divergence of its pair of laws from the null's, with both laws known (section 4.2 of the
// derivation: KL(P||P*) + KL(Q||Q*), minus the tax of delta). The values between the two centres are cut into 64
// bins; beyond them the ratio is constant. Discretising rounds down.
func growth(h eprocess.Null, epsilon float64) float64 {
	const inner = 64
	var p, q, ps, qs [inner + 2]float64
	p[0], q[0] = .5, .5*math.Exp(-epsilon)
	p[inner+1], q[inner+1] = q[0], p[0]
	from := 1.0
	for i := range inner {
		to := math.Exp(-epsilon * float64(i+1) / inner)
		p[i+1] = .5 * (from - to)
		q[inner-i] = p[i+1]
		from = to
	}
	eprocess.ProjectBins(p[:], q[:], h.Ratio, 1, 1, ps[:], qs[:])
	g, top0, top1 := 0.0, 0.0, 0.0
	for i := range p {
		g += p[i]*eprocess.LogRatio(p[i], ps[i], &top0) + q[i]*eprocess.LogRatio(q[i], qs[i], &top1)
	}
	return g - 2*math.Log1p(h.Delta*max(0, (top0+top1)/2-1))
}

// growths caches the results of growth for the claim of one audit, by the epsilons of the null and of the
// mechanism: later searches need most of them again.
type growths struct{ known map[[2]float64]float64 }

const maxGrowths = 1 << 10

func (g *growths) at(h eprocess.Null, epsilon float64) float64 {
	x, ok := g.known[[2]float64{h.Epsilon, epsilon}]
	if !ok {
		if g.known == nil || len(g.known) >= maxGrowths {
			g.known = map[[2]float64]float64{}
		}
		x = growth(h, epsilon)
		g.known[[2]float64{h.Epsilon, epsilon}] = x
	}
	return x
}

// Constants of minimalDetectable, fitted to measured audits of Laplace mechanisms.
const (
	overheadNats = 3 // what learning and mixing cost
	ninetyFactor = 2 // pairs at which 90 % are found, over those at which the mean evidence suffices
)

// minimalDetectable returns the smallest true epsilon of a Laplace mechanism that n pairs would have detected with 90 %
// probability: the least at which 2 (ln(1/alpha) + 3 + cost)/growth is at most n, where cost is the log of the share
// of wealth that bets on the leak in question. It is NaN when even a mechanism without noise would not be found.
// Of a curve it is the least of those of its points.
func (g *growths) minimalDetectable(c Claim, alpha float64, n int, cost float64) float64 {
	least, points := math.NaN(), c.points()
	for _, p := range points {
		if e := g.detectable(p, alpha/float64(len(points)), n, cost); !(e >= least) && !math.IsNaN(e) {
			least = e
		}
	}
	return least
}

// detectable is minimalDetectable of one point.
func (g *growths) detectable(c curve.Point, alpha float64, n int, cost float64) float64 {
	h := eprocess.NewNull(c.Epsilon, c.Delta)
	need := ninetyFactor * (math.Log(1/alpha) + overheadNats + cost) / float64(max(n, 1))
	lo, hi := c.Epsilon, c.Epsilon+1
	for g.at(h, hi) < need {
		hi = c.Epsilon + 2*(hi-c.Epsilon)
		if hi > c.Epsilon+64 {
			return math.NaN()
		}
	}
	for hi-lo > 1e-4*hi {
		mid := lo + (hi-lo)/2
		if g.at(h, mid) < need {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// wouldHaveFound sets the figures of what as many pairs as were seen would have found.
func (a *Audit) wouldHaveFound(r *Report) {
	n, cost := a.observed.pairs, a.observed.slotCost()
	r.MinimalDetectable = Float(a.growths.minimalDetectable(a.claim, a.opts.alpha(), n, cost))
	r.MinimalInTenth = Float(a.growths.minimalDetectable(a.claim, a.opts.alpha(), n/10, cost))
	if factor := float64(r.MinimalDetectable) / a.claim.Epsilon; a.claim.Epsilon > 0 && a.claim.Curve == "" && !math.IsNaN(factor) {
		r.MinimalFactor = factor
	}
}

// WouldHaveFound says what the pairs of an audit without evidence would have found: a shift of a law like the one seen,
// and a leak that one answer of ten shows.
func (r *Report) WouldHaveFound() string {
	text := fmt.Sprintf("a true epsilon of %.3g", float64(r.MinimalDetectable))
	if r.MinimalFactor > 0 {
		text += fmt.Sprintf(" (noise %.3g times too small)", r.MinimalFactor)
	}
	if tenth := float64(r.MinimalInTenth); !math.IsNaN(tenth) {
		return text + fmt.Sprintf(", or of %.3g in one answer of ten,", tenth)
	}
	return text + ", but no leak that one answer of ten shows,"
}
