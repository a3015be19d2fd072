package book

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// state encodes or decodes a stake. all are the mixtures that it may have; the state stores the index of one.
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

// State encodes or decodes an epoch. tables are those that its entries refer to.
func (e *Epoch) State(c *state.Codec, tables []*event.Table) {
	grants := func(g *Grant) { c.All((*int)(&g.Score), &g.Fraction) }
	state.List(c, &e.Retire, func(id *ScoreID) { state.Num(c, id) })
	c.All(&e.DiscardGains, &e.Restart)
	state.List(c, &e.Grants, grants)
	state.List(c, &e.Lend, grants)
	state.List(c, &e.Shift, grants)
	c.All(&e.Priors, &e.At, &e.Share, &e.Opened, &e.Claim)
	state.List(c, &e.Sides, func(s *Side) { c.All(&s.Opened, &s.Claim) })
	state.List(c, &e.Entries, func(en *Entry) {
		state.Num(c, &en.Score)
		state.Num(c, &en.Scope)
		event.TableRef(c, &en.Table, tables)
		c.Check(en.Table != nil)
	})
}

// State encodes or decodes the wealth of a process.
func (p *Process) State(c *state.Codec) {
	c.All(&p.Epsilon, &p.Ratio, &p.Delta, &p.cash, &p.Highest, &p.Below, &p.Logw, &p.sums)
}

// Verify checks that the places of the stakes are contiguous ranges, in order, that cover k.Places.
func (k *Book) Verify(c *state.Codec) {
	places := 0
	for i := range k.stakes {
		s := &k.stakes[i]
		c.Check(s.at == places)
		places += s.size()
	}
	c.Check(places == k.Places)
}

// Verify checks that the process is the one against h, that it has at most the places and scores of the book, and that
// no wealth is NaN or plus infinity.
func (p *Process) Verify(c *state.Codec, k *Book, h eprocess.Null) {
	c.Check(len(p.Logw) <= k.Places && len(p.sums) <= len(k.stakes))
	c.Check(p.Null == h)
	for _, list := range [][]float64{p.Logw, p.sums, {p.cash, p.Highest}} {
		for _, x := range list {
			c.Check(!math.IsNaN(x) && !math.IsInf(x, 1))
		}
	}
}

// Verify checks the process at the claim, which has all places and all scores of the book.
func (l *Lead) Verify(c *state.Codec, k *Book, h eprocess.Null) {
	c.Check(len(l.Logw) == k.Places && len(l.sums) == len(k.stakes))
	l.Process.Verify(c, k, h)
}

// Verify checks that all scores of an epoch are in the book, that fractions are in [0, 1], that Priors and Shift have
// the same length, that no wealth is NaN or plus infinity, and that the table of every entry has the form of its
// score's mixture. laws and paired are the mixtures of the tables that are bet on bin by bin and by pairs.
func (e *Epoch) Verify(c *state.Codec, k *Book, laws, paired eprocess.Mixture) {
	known := func(id ScoreID) { c.Check(id >= 0 && int(id) < len(k.stakes)) }
	fraction := func(x float64) { c.Check(x >= 0 && x <= 1) }
	for _, id := range e.Retire {
		known(id)
	}
	for _, list := range [][]Grant{e.Grants, e.Lend, e.Shift} {
		for _, g := range list {
			known(g.Score)
			fraction(g.Fraction)
		}
	}
	c.Check(len(e.Priors) == len(e.Shift))
	for _, x := range e.Priors {
		fraction(x)
	}
	fraction(e.Share)
	for _, s := range append(slices.Clone(e.Sides), Side{e.Opened, e.Claim}) {
		c.Check(!math.IsNaN(s.Opened) && !math.IsInf(s.Opened, 1) && !math.IsNaN(s.Claim) && !math.IsInf(s.Claim, 1))
	}
	for _, en := range e.Entries {
		known(en.Score)
		c.Check(en.Scope <= ClaimAlone)
		if c.Err == nil {
			mix := &k.stakes[en.Score].mix[0]
			c.Check((mix == &laws[0]) == (en.Table.Laws != nil))
			c.Check((mix == &paired[0]) == (en.Table.Paired != nil))
		}
	}
}

// State encodes or decodes the stakes and the finished epochs. all are the mixtures that a stake may have.
func (k *Book) State(c *state.Codec, all []eprocess.Mixture, tables []*event.Table) {
	state.List(c, &k.stakes, func(s *stake) { s.state(c, all) })
	state.Num(c, &k.Places)
	state.List(c, &k.Epochs, func(e **Epoch) { state.Made(c, e).State(c, tables) })
}

// State encodes or decodes the process without its bets, which follow from the epoch's tables.
func (l *Lead) State(c *state.Codec) {
	l.Process.State(c)
	c.Float(&l.Latest)
}
