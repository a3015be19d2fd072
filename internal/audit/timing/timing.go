// Package timing compares how long one query takes on D0 and on a neighbour: a side channel, about which the claim says
// nothing. It is pure: no I/O, no clock, no randomness.
package timing

import (
	"math"
	"slices"
	"time"
)

// Parameters of the comparison; see docs/statistics.md, "What does the time of an answer show?".
const (
	// warmUp is the number of pairs from which the first thresholds are taken, and which are not judged.
	warmUp = 20
	// steps is the number of differences for which Report tests whether the true one is larger.
	steps = 100
)

// levels are the quantiles of past latencies that serve as thresholds, fractions the stakes as parts of the largest one
// that cannot ruin a bet.
var (
	levels    = [...]float64{.1, .25, .5, .75, .9, .95, .99}
	fractions = [...]float64{.02, .05, .1, .2, .4, .6, .8, .95}
)

// Comparison holds the latencies of pairs of trials. The order of the two trials of a pair must be random. Then, if the
// latencies have the same law in both worlds, it is equally likely for each that it alone exceeds a threshold, whatever
// else affects them: load, caches, the order itself. The zero value is an empty Comparison. It is not safe for
// concurrent use.
type Comparison struct {
	worlds     [2][]time.Duration // D0 and the neighbour
	thresholds []time.Duration    // by level; nil before the first
	renew      int                // number of pairs with which they are taken again
	bets       [len(levels)]bet
}

// bet counts the judged pairs of one threshold: those of which the trial on one world alone exceeds it, and the others.
type bet struct {
	above [2]int
	same  int
}

// Add adds a pair.
func (c *Comparison) Add(d0, d1 time.Duration) {
	for i, t := range c.thresholds { // of the pairs before
		switch b := &c.bets[i]; {
		case d0 > t && d1 <= t:
			b.above[0]++
		case d1 > t && d0 <= t:
			b.above[1]++
		default:
			b.same++
		}
	}
	c.worlds[0], c.worlds[1] = append(c.worlds[0], d0), append(c.worlds[1], d1)
	if n := len(c.worlds[0]); n == warmUp || n == c.renew {
		c.renew = 2 * n
		all := slices.Sorted(slices.Values(slices.Concat(c.worlds[0], c.worlds[1])))
		c.thresholds = c.thresholds[:0]
		for _, level := range levels {
			c.thresholds = append(c.thresholds, all[int(level*float64(len(all)))])
		}
	}
}

// Pairs returns the number of pairs.
func (c *Comparison) Pairs() int { return len(c.worlds[0]) }

// Report is the result of a comparison.
type Report struct {
	Pairs      int     `json:"pairs"`
	Differs    bool    `json:"differs"` // the latency depends on the world, at Confidence
	Confidence float64 `json:"confidence"`
	// GuessLower is a lower bound, at Confidence, on the probability that an attacker guesses the world right from the
	// latency of one answer; 0.5 = no better than a coin.
	GuessLower float64    `json:"guess_probability_lower"`
	Medians    [2]float64 `json:"median_seconds"` // on D0 and on the neighbour
}

// Report returns the present result. It may be asked for at any time: each of its statements is wrong at any time with
// a probability of at most 1-confidence.
func (c *Comparison) Report(confidence float64) Report {
	r := Report{Pairs: len(c.worlds[0]), Confidence: confidence, GuessLower: .5}
	if r.Pairs == 0 {
		return r
	}
	for w, all := range c.worlds {
		sorted := slices.Sorted(slices.Values(all))
		r.Medians[w] = sorted[len(sorted)/2].Seconds()
	}
	least := -math.Log1p(-confidence)
	for i := range steps {
		difference := float64(i) / steps
		if c.wealth(difference) < least {
			break
		}
		r.Differs, r.GuessLower = true, (1+difference)/2
	}
	return r
}

// wealth returns the logarithm of the mean wealth of bets that no threshold is exceeded in one world with a probability
// that is larger by more than difference than in the other (Waudby-Smith and Ramdas, "Estimating means of bounded
// random variables by betting", 2024). The total variation distance of the two laws is at least that of any such event;
// with two equal priors, the best guess of the world is right with probability (1 + distance)/2.
func (c *Comparison) wealth(difference float64) float64 {
	var logs []float64
	for _, b := range c.bets {
		for first := range 2 {
			up, down := float64(b.above[first]), float64(b.above[1-first])
			for _, f := range fractions {
				stake := f / (1 + difference)
				logs = append(logs, up*math.Log1p(stake*(1-difference))+float64(b.same)*math.Log1p(-stake*difference)+down*math.Log1p(-stake*(1+difference)))
			}
		}
	}
	most, sum := slices.Max(logs), 0.0
	for _, l := range logs {
		sum += math.Exp(l - most)
	}
	return most + math.Log(sum/float64(len(logs)))
}
