package analysis

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// certificateState describes the event of the fixed budget; its series is one of the audit's.
func (a *Audit) certificateState(c *state.Codec) {
	c.Optional(a.certificate != nil, func() { a.certificate = &certificate{} }, func() {
		f := a.certificate
		all := a.all()
		n := slices.Index(all, f.series)
		state.Num(c, &n)
		if c.Reading {
			if n < 0 || n >= len(all) {
				c.Fail()
				return
			}
			f.series = all[n]
		}
		f.binner.State(c)
		if c.Reading {
			f.statistic = f.series.kind.make(f.series.slot)
		}
		f.statistic.state(c)
		c.All(&f.hits[0], &f.hits[1], &f.set, &f.heavy, &f.pairs)
		c.Check(f.heavy == 0 || f.heavy == 1)
		c.Check(f.pairs >= 0 && f.hits[0] >= 0 && f.hits[1] >= 0 && f.hits[0] <= f.pairs && f.hits[1] <= f.pairs)
		c.Optional(f.event != nil, func() { f.event = &Event{} }, func() {
			f.event.state(c)
		})
	})
}

func (r *repeats) state(c *state.Codec) {
	state.Num(c, &r.thinned)
	c.Check(r.thinned < 64)
	for w := range r.different {
		c.All(&r.echoes[w], &r.twice[w])
		var keys []uint64
		for k, n := range r.seen {
			if n[w] > 0 {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		state.List(c, &keys, func(k *uint64) {
			c.U64(k)
			n := r.seen[*k]
			state.Num(c, &n[w])
			c.Check(n[w] > 0)
			if c.Reading && c.Err == nil {
				if r.seen == nil {
					r.seen = map[uint64][2]int32{}
				}
				r.seen[*k] = n
				r.different[w]++
			}
		})
		c.Check(r.echoes[w] >= 0 && r.twice[w] >= 0 && r.different[w] <= maxRepeats)
	}
}

func (b *ranges) state(c *state.Codec) {
	for w := range b.n {
		c.All(&b.n[w], &b.low[w], &b.top[w])
		c.Check(b.n[w] >= 0)
	}
}

func (e *Event) state(c *state.Codec) {
	c.All(&e.Score, &e.Direction, (*string)(&e.Kind), &e.Column, (*string)(&e.Tail))
	c.Withheld(&e.Partition)
	c.Withheld(&e.Description)
	c.All((*float64)(&e.D0), (*float64)(&e.D1))
}

func outcomeState(c *state.Codec, o *Outcome) {
	c.Text(&o.SQLState)
	state.List(c, &o.Columns, func(x *Column) { c.Text(&x.Name); c.Bool(&x.Discrete) })
	state.List(c, &o.Rows, func(row *[]Value) {
		state.List(c, row, func(v *Value) { state.Num(c, &v.Kind); c.Float(&v.Num); c.Text(&v.Text) })
	})
}

// verify checks that the parts of a restored state fit together, so that no index is out of range.
func (a *Audit) verify(c *state.Codec) {
	c.Check(a.pairs >= a.detectedAt && a.stride >= 1 && a.front <= len(a.grid) && a.funded <= len(a.slots))
	c.Check(a.claimAt < 0 || a.front <= a.claimAt || a.detectedAt > 0)
	c.Check(len(a.path) == len(a.book.Epochs))
	a.book.Verify(c)
	at := a.claim.Epsilon
	if a.claimAt >= 0 {
		at = a.grid[a.claimAt]
	}
	a.lead.Verify(c, &a.book, eprocess.NewNull(at, a.claim.Delta))
	a.climber.Verify(c, &a.book, eprocess.NewNull(a.grid[min(a.front, len(a.grid)-1)], a.claim.Delta))
	for _, e := range append(slices.Clone(a.book.Epochs), a.epoch) {
		e.Verify(c, &a.book, a.mix[lawPrior], a.mix[pairedPrior])
	}
	a.verifySeries(c)
	c.Check(len(a.retained) <= firstRetained+latestRetained)
}

func (a *Audit) verifySeries(c *state.Codec) {
	if a.reader == nil {
		c.Check(len(a.slots) == 0 && len(a.specials) == 0 && a.certificate == nil)
		return
	}
	c.Check(len(a.specials) > 0 && a.specials[0].kind == rowsScore && len(a.slots) <= a.reader.SlotsUsed())
	if c.Err != nil {
		return
	}
	kept := len(a.specials[0].past[0])
	c.Check(len(a.now[0].codes) == len(a.now[1].codes) && len(a.now[0].codes) >= len(a.slots))
	seen := map[*kind]bool{}
	for _, s := range a.specials {
		c.Check(s.kind != slotScore && !seen[s.kind])
		c.Check(!s.kind.keeps && len(s.past[0]) == 0 || len(s.past[0]) == kept)
		seen[s.kind] = true
	}
	for i, s := range a.slots {
		c.Check(s.kind == slotScore && s.slot == i && len(s.past[0]) == kept)
	}
	c.Check(seen[laplaceScore] == seen[gaussScore])
	for _, s := range a.all() {
		c.Check(s.id >= 0 && (!s.staked || int(s.id) < a.book.Scores()))
	}
}
