package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

func (t *table) state(c *state.Codec) {
	c.All(&t.numeric, &t.pairs)
	for w := range 2 {
		c.Counts(&t.before[w])
		c.Counts(&t.during[w])
	}
	c.Bool(&t.lopsided)
	n := len(t.before[0])
	c.Check(n > 0 && n <= bins.MaxBins && t.numeric > 0 && t.numeric <= n && t.pairs >= 0)
	c.Check(len(t.before[1]) == n && len(t.during[0]) == n && len(t.during[1]) == n)
	c.Optional(t.fixed != nil, func() { t.fixed = &events{} }, func() { t.fixed.state(c, n) })
	c.Optional(t.laws != nil, func() { t.laws = &laws{} }, func() {
		for w := range t.laws {
			c.Floats(&t.laws[w])
			c.Check(len(t.laws[w]) == n && math.Abs(sumOf(t.laws[w])-1) < 1e-6)
			for _, p := range t.laws[w] {
				c.Check(p >= 0 && p <= 1)
			}
		}
	})
	c.Optional(t.paired != nil, func() { t.paired = &pairedTable{} }, func() {
		t.paired.events.state(c, n)
		for i := range t.paired.counts {
			c.Tally(t.paired.counts[i][:])
		}
	})
}

func (e *events) state(c *state.Codec, bins int) {
	for i := range e.toward {
		c.All(&e.toward[i], &e.live[i])
		c.Check(bins == 64 || e.toward[i]>>bins == 0)
	}
	c.Check(e.toward[0]&e.toward[1] == 0 && e.toward[0]&e.toward[2] == 0 && e.toward[1]&e.toward[2] == 0)
	c.Float(&e.z2)
}
