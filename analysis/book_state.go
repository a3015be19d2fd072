package analysis

import (
	"math"
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

// verify checks that the stakes divide the places.
func (k *book) verify(c *state.Codec) {
	places := 0
	for i := range k.stakes {
		s := &k.stakes[i]
		c.Check(s.at == places)
		places += s.size()
	}
	c.Check(places == k.places)
}

// verify checks that the process against a null fits the book, and that its wealth is one that a process can have.
func (p *process) verify(c *state.Codec, k *book, h eprocess.Null) {
	c.Check(len(p.logw) <= k.places && len(p.sums) <= len(k.stakes))
	c.Check(p.Null == h)
	for _, list := range [][]float64{p.logw, p.sums, {p.cash, p.highest}} {
		for _, x := range list {
			c.Check(!math.IsNaN(x) && !math.IsInf(x, 1))
		}
	}
}

// verify checks the process at the claim, which has every place.
func (l *lead) verify(c *state.Codec, k *book, h eprocess.Null) {
	c.Check(len(l.logw) == k.places && len(l.sums) == len(k.stakes))
	l.process.verify(c, k, h)
}

// verify checks that an epoch refers to scores of the book alone, and that its numbers are ones that an epoch can have. laws and paired are the
// mixtures of the tables that are bet on bin by bin and by pairs.
func (e *epoch) verify(c *state.Codec, k *book, laws, paired eprocess.Mixture) {
	known := func(id scoreID) { c.Check(id >= 0 && int(id) < len(k.stakes)) }
	fraction := func(x float64) { c.Check(x >= 0 && x <= 1) }
	for _, id := range e.retire {
		known(id)
	}
	for _, list := range [][]grant{e.grants, e.lend, e.shift} {
		for _, g := range list {
			known(g.score)
			fraction(g.fraction)
		}
	}
	c.Check(len(e.priors) == len(e.shift))
	for _, x := range e.priors {
		fraction(x)
	}
	fraction(e.share)
	c.Check(!math.IsNaN(e.opened) && !math.IsInf(e.opened, 1) && !math.IsNaN(e.claim) && !math.IsInf(e.claim, 1))
	for _, en := range e.entries {
		known(en.score)
		c.Check(en.scope <= claimAlone)
		if c.Err == nil {
			mix := &k.stakes[en.score].mix[0]
			c.Check((mix == &laws[0]) == (en.table.Laws != nil))
			c.Check((mix == &paired[0]) == (en.table.Paired != nil))
		}
	}
}

// state describes the stakes and the finished epochs. all are the mixtures that a stake may have.
func (k *book) state(c *state.Codec, all []eprocess.Mixture, tables []*event.Table) {
	state.List(c, &k.stakes, func(s *stake) { s.state(c, all) })
	state.Num(c, &k.places)
	state.List(c, &k.epochs, func(e **epoch) { state.Made(c, e).state(c, tables) })
}

// state describes the process, not its bets, which follow from the epoch's tables.
func (l *lead) state(c *state.Codec) {
	l.process.state(c)
	c.Float(&l.latest)
}
