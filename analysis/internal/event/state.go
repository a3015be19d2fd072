package event

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// State describes a table.
func (t *Table) State(c *state.Codec) {
	c.All(&t.Numeric, &t.Pairs)
	for w := range 2 {
		c.Counts(&t.Before[w])
		c.Counts(&t.During[w])
	}
	c.Bool(&t.Lopsided)
	n := len(t.Before[0])
	c.Check(n > 0 && n <= bins.MaxBins && t.Numeric > 0 && t.Numeric <= n && t.Pairs >= 0)
	c.Check(len(t.Before[1]) == n && len(t.During[0]) == n && len(t.During[1]) == n)
	c.Optional(t.Fixed != nil, func() { t.Fixed = &Events{} }, func() { t.Fixed.state(c, n) })
	c.Optional(t.Laws != nil, func() { t.Laws = &Laws{} }, func() {
		for w := range t.Laws {
			c.Floats(&t.Laws[w])
			c.Check(len(t.Laws[w]) == n && math.Abs(SumOf(t.Laws[w])-1) < 1e-6)
			for _, p := range t.Laws[w] {
				c.Check(p >= 0 && p <= 1)
			}
		}
	})
	c.Optional(t.Paired != nil, func() { t.Paired = &Paired{} }, func() {
		t.Paired.Events.state(c, n)
		for i := range t.Paired.counts {
			c.Tally(t.Paired.counts[i][:])
		}
	})
}

func (e *Events) state(c *state.Codec, bins int) {
	for i := range e.Toward {
		c.All(&e.Toward[i], &e.Live[i])
		c.Check(bins == 64 || e.Toward[i]>>bins == 0)
	}
	c.Check(e.Toward[0]&e.Toward[1] == 0 && e.Toward[0]&e.Toward[2] == 0 && e.Toward[1]&e.Toward[2] == 0)
	c.Float(&e.z2)
}

// TableRef describes a table by its number; 0 is nil.
func TableRef(c *state.Codec, t **Table, all []*Table) {
	n := slices.Index(all, *t) + 1
	state.Num(c, &n)
	if c.Reading {
		*t = nil
		if n < 0 || n > len(all) {
			c.Fail()
		} else if n > 0 {
			*t = all[n-1]
		}
	}
}
