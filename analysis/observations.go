package analysis

import (
	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// observations are what the pairs of trials have shown: counts, the scores of the results, and the tests of
// independence. They hold no wealth.
type observations struct {
	pairs     int
	failures  [2]int
	cut       [2]int // failures that are results of too many rows or bytes
	monotony  monotony
	scores    score.Set
	answers   answers
	buckets   []slotEstimate // per slot; no part of the state
	scratch   bins.Scratch
	unmatched int // results of another shape

	retained []retained
	misfit   bool // a result did not fit the layout
	layoutAt int  // pairs at which the layout may be learned again
}

func newObservations() observations {
	return observations{scores: score.Set{Input: score.Input{Layout: score.Layout{Errors: code.NewDictionary(code.FirstError, code.OtherError)}, Stride: 1}}}
}

// add counts a pair with its fingerprints, before its results are read.
func (o *observations) add(d0, d1 *Outcome, h [2]uint64, nextTurn int) {
	o.pairs++
	o.answers = answers{}
	o.retain(d0, d1, nextTurn)
	o.monotony.add(h)
	for w, r := range [2]*Outcome{d0, d1} {
		if r.Failed() {
			o.failures[w]++
		}
		o.cut[w] += code.Bit(r.SQLState == outcome.TooLarge)
	}
}

// restart restarts the tests of independence, and returns the number of pairs of the past that are kept.
func (o *observations) restart() (kept int) {
	for _, s := range o.scores.Slots {
		s.Restart()
	}
	if len(o.scores.Slots) > 0 {
		kept = len(o.scores.Slots[0].Past[0])
	}
	o.answers = answers{}
	return kept
}

// read turns a pair into codes and counts them, also for the certificate if there is one. again is set if it was read
// before, by another layout.
func (o *observations) read(d0, d1 *Outcome, h [2]uint64, again bool, maxTrials int, c *certificate) {
	p := &score.Pair{
		Results: [2]*Outcome{d0, d1}, Hashes: h, Again: again, Number: o.pairs,
		Most: maxTrials + firstRetained + latestRetained, // retained pairs may be read twice
	}
	o.scores.Read(p)
	if c != nil {
		c.count(&o.scores.Now)
	}
	o.scores.Count(p)
}

// monotony records whether the results of each world vary.
type monotony struct {
	pairs  int
	first  [2]uint64
	broken [2]bool
}

func (m *monotony) add(h [2]uint64) {
	m.pairs++
	if m.pairs == 1 {
		m.first = h
	}
	for w := range h {
		m.broken[w] = m.broken[w] || h[w] != m.first[w]
	}
}

// constant reports whether neither world's result ever varied.
func (m *monotony) constant() bool { return !m.broken[0] && !m.broken[1] }
