package dependence

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// This file tests the opposite of Independence: whether the trials of a slot have shown that they do not depend on each
// other. The test is made when the wealth suffices for a violation, before one is reported: on a few trials a test for
// dependence has no power, and a pass does not show independence. The likelihood of the outcomes' bits as independent
// coins is compared with their average likelihood under trials that reuse the outcome before with a probability, and
// under pairs whose outcomes are coupled. While trials are of that kind the ratio passes e^c with a probability of
// about e^-c at most, however often one looks.

var (
	// reuse are the probabilities with which a trial repeats the outcome of the one before.
	reuse = [...]float64{.6, .8, .9, .95}
	// coupling are the probabilities with which the outcomes of a pair are as alike, or as unlike, as their laws allow.
	coupling = [...]float64{.4, .7, .95}
)

// The evidence that a slot must show, in nats.
const (
	leastOwn  = 1.5 // each world by itself
	leastBoth = 4   // both worlds together
	leastPair = 1   // the two trials of a pair
)

// leastCoupling is by how much the strongest coupling must change the probability that both bits are 1 to count. Less
// is left out:
//   - Outcomes of probability below 1/256 that come together are found by the test for dependence, of which two such pairs pass suspicion.
//   - Outcomes of probabilities p and q with p q below 1/256 that never come together have a correlation of about -1/16. The factors f and h
//     of a pair then have E[(f h)^t] <= 1 for t = .937, whatever is bet, so that the wealth of a bet passes 1/alpha with probability at most
//     alpha^t (TestCouplingLeftOut computes it).
const leastCoupling = 1. / 256

// Suspicion is the average of the ratios of one slot from which a violation is held back (see Independence). It falls
// again where the trials are independent: the estimators cost the square root of the number of trials.
const Suspicion = 3

// StuckPairs is the fewest pairs for a violation while one world has shown one outcome only: a run of so many
// equal answers has a probability below .06 where nine answers in ten are reused and fresh ones are binary responses of
// epsilon 1.
const StuckPairs = 100

// mixingValues is the most pairs that are used, the latest ones.
const mixingValues = 512

// Mixing is what trials have shown of their independence, in nats: those of each world by themselves, and those of a
// pair.
type Mixing struct {
	Own  [2]float64
	Pair float64
}

// Enough reports whether that many slots together have shown enough.
func (m *Mixing) Enough(slots float64) bool {
	both := m.Own[0] + m.Own[1]
	return min(m.Own[0], m.Own[1]) >= leastOwn*slots && both >= leastBoth*slots && m.Pair >= leastPair*slots
}

// Add adds what a slot has shown, up to the most that is required of one.
func (m *Mixing) Add(s Mixing) {
	for w, x := range s.Own {
		m.Own[w] += min(x, leastBoth)
	}
	m.Pair += min(s.Pair, leastBoth)
}

// MixingOf returns what the trials of a slot have shown of their independence since a number of kept pairs. enough
// says that the pairs are so many that outcomes that never vary hold back no violation; shared says that the noise that
// the worlds share is accounted for.
func MixingOf(past [2][]code.Code, shared, enough bool, since int, sc *bins.Scratch) Mixing {
	from := max(0, len(past[0])-mixingValues, min(since, len(past[0])-1))
	past = [2][]code.Code{past[0][from:], past[1][from:]}
	var own [2]float64
	var scores [2][]float64
	var bits [2][]uint8
	for w, codes := range past {
		var m marks
		m.choose(codes, sc)
		if bits[w] = make([]uint8, len(codes)); !m.hasAtom {
			scores[w] = normalScores(codes)
		}
		for i, c := range codes {
			bits[w][i] = m.bits(c) & 1
		}
		if own[w] = ownMixing(bits[w]); scores[w] != nil {
			own[w] = linearMixing(scores[w][:len(codes)-1], scores[w][1:], ownCorrelations[:])
		}
	}
	pair := math.Inf(1)
	switch {
	case shared:
	case scores[0] != nil && scores[1] != nil:
		pair = linearMixing(scores[0], scores[1], pairCorrelations[:])
	default:
		pair = pairMixing(bits[0], bits[1])
	}
	if enough { // outcomes that never vary show nothing, and must not hold back a violation for ever
		for w := range bits {
			if constant(bits[w]) {
				own[w], pair = math.Inf(1), math.Inf(1)
			}
		}
	}
	return Mixing{own, pair}
}

func constant(bits []uint8) bool {
	return !slices.Contains(bits, 0) || !slices.Contains(bits, 1)
}

// Correlations of normal scores that stand for dependent numbers.
var (
	ownCorrelations  = [...]float64{.5, .7, .85, .95}
	pairCorrelations = [...]float64{-.95, -.8, -.5, .5, .8, .95}
)

// normalScores returns the normal quantiles of the ranks of numbers, nil if not all outcomes are numbers.
func normalScores(codes []code.Code) []float64 {
	order := make([]int, len(codes))
	for i, c := range codes {
		if order[i] = i; !code.IsNumber(c) {
			return nil
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(codes[i], codes[j]) })
	scores := make([]float64, len(codes))
	for rank, i := range order {
		scores[i] = math.Sqrt2 * math.Erfinv(2*(float64(rank)+.5)/float64(len(codes))-1)
	}
	return scores
}

// linearMixing compares independent pairs of standard normal numbers with correlated ones.
func linearMixing(x, y []float64, correlations []float64) float64 {
	var squares, products float64
	for i := range x {
		squares += x[i]*x[i] + y[i]*y[i]
		products += x[i] * y[i]
	}
	average := math.Inf(-1)
	for _, r := range correlations {
		rest := 1 - r*r
		average = eprocess.LogAdd(average, -float64(len(x))/2*math.Log(rest)-(r*r*squares-2*r*products)/(2*rest))
	}
	return math.Log(float64(len(correlations))) - average
}

// ownMixing compares independent trials with trials that reuse the outcome before.
func ownMixing(bits []uint8) float64 {
	var ones float64
	var moves [2][2]float64
	for i, b := range bits {
		ones += float64(b)
		if i > 0 {
			moves[bits[i-1]][b]++
		}
	}
	p := (ones + .5) / (float64(len(bits)) + 1)
	law := [2]float64{1 - p, p}
	average := math.Inf(-1)
	for _, s := range reuse {
		l := 0.0
		for from := range law {
			for to, q := range law {
				l += moves[from][to] * math.Log((s*float64(code.Bit(from == to))+(1-s)*q)/q)
			}
		}
		average = eprocess.LogAdd(average, l)
	}
	return math.Log(float64(len(reuse))) - average
}

// pairMixing compares independent trials of a pair with coupled ones.
func pairMixing(x, y []uint8) float64 {
	n := float64(len(x))
	var counts [2][2]float64
	var p, q float64
	for i := range x {
		counts[x[i]][y[i]]++
		p, q = p+float64(x[i]), q+float64(y[i])
	}
	p, q = (p+.5)/(n+1), (q+.5)/(n+1)
	free := [2][2]float64{{(1 - p) * (1 - q), (1 - p) * q}, {p * (1 - q), p * q}}
	average, kinds := math.Inf(-1), 0
	for _, both := range [2]float64{min(p, q), max(0, p+q-1)} { // the probability that both bits are 1: alike, unlike
		if math.Abs(both-p*q) < leastCoupling {
			continue
		}
		kinds++
		close := [2][2]float64{{1 - p - q + both, q - both}, {p - both, both}}
		for _, s := range coupling {
			l := 0.0
			for i := range free {
				for j, f := range free[i] {
					l += counts[i][j] * math.Log((s*max(0, close[i][j])+(1-s)*f)/f)
				}
			}
			average = eprocess.LogAdd(average, l)
		}
	}
	if kinds == 0 {
		return math.Inf(1)
	}
	return math.Log(float64(kinds*len(coupling))) - average
}
