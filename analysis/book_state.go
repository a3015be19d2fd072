package analysis

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// state describes a stake; its mixture is one of those given.
func (s *stake) state(c *state.Codec, all []eprocess.Mixture) {
	state.List(c, &s.views, func(v *event.View) { state.Num(c, v); c.Check(*v <= event.Sorted) })
	state.Num(c, &s.at)
	n := 0
	for i, m := range all {
		if len(s.mix) > 0 && &m[0] == &s.mix[0] {
			n = i
		}
	}
	state.Num(c, &n)
	if c.Reading {
		if n < 0 || n >= len(all) {
			c.Fail()
			return
		}
		s.mix = all[n]
	}
	c.Check(len(s.views) > 0)
}

func (e *epoch) state(c *state.Codec, tables []*event.Table) {
	grants := func(g *grant) { c.All((*int)(&g.score), &g.fraction) }
	state.List(c, &e.retire, func(id *scoreID) { state.Num(c, id) })
	c.All(&e.void, &e.anew)
	state.List(c, &e.grants, grants)
	state.List(c, &e.lend, grants)
	state.List(c, &e.shift, grants)
	c.All(&e.priors, &e.at, &e.share, &e.opened, &e.claim)
	state.List(c, &e.entries, func(en *entry) {
		state.Num(c, &en.score)
		state.Num(c, &en.scope)
		tableRef(c, &en.table, tables)
		c.Check(en.table != nil)
	})
}

func (p *process) state(c *state.Codec) {
	c.All(&p.Epsilon, &p.Ratio, &p.Delta, &p.cash, &p.highest, &p.below, &p.logw, &p.sums)
}

// tableRef describes a table by its number; 0 is nil.
func tableRef(c *state.Codec, t **event.Table, all []*event.Table) {
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
