package score

import (
	"math"
	"slices"
	"unsafe"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// State describes the layout and the scores, which refer to tables by number. A reader that is restored has the given
// salt.
func (set *Set) State(c *state.Codec, tables []*event.Table, salt string) {
	c.Optional(set.Reader != nil, func() { set.Reader = results.NewReader(results.Layout{Width: -1}, 0, salt, set.Errors) }, func() {
		set.Reader.State(c)
	})
	if set.Reader != nil {
		c.Groups = len(set.Reader.Labels)
	}
	state.List(c, &set.Slots, func(s **Series) { state.Made(c, s).state(c, tables) })
	c.Slots = len(set.Slots)
	state.List(c, (*[]*Series)(&set.specials), func(s **Series) { state.Made(c, s).state(c, tables) })
}

// PastState describes what is kept of the past beside that of the scores, but for Repeats.
func (set *Set) PastState(c *state.Codec) {
	set.ranges.state(c)
	set.orders.state(c)
}

func (s *Series) state(c *state.Codec, tables []*event.Table) {
	k := slices.Index(kinds[:], s.kind)
	state.Num(c, &k)
	state.Num(c, &s.Slot)
	if c.Check(k >= 0 && k < len(kinds)); c.Err != nil {
		return
	}
	if c.Reading {
		s.kind, s.statistic = kinds[k], kinds[k].make(s.Slot)
	}
	s.statistic.state(c)
	c.All((*int)(&s.id), &s.learned, &s.staked, &s.Shared)
	s.Binner.State(c)
	event.TableRef(c, &s.Table, tables)
	w := &s.watch
	c.All(&s.Past[0], &s.Past[1], &w.seen, &w.changes, &w.precise, &w.first[0], &w.first[1], &w.last, &w.difference, &w.sum)
	s.Independence.State(c)
	c.Check(s.learned >= 0 && len(s.Past[0]) == len(s.Past[1]))
	c.Check(s.Table == nil || s.Table.Bins() == s.Binner.Bins() && s.Table.Numeric == s.Binner.Numeric())
	c.Check(s.kind.check == nil || s.Table == nil || s.kind.check(s))
}

// Verify checks that the parts of restored scores fit together, so that no index is out of range. scores is the number
// of those in the book.
func (set *Set) Verify(c *state.Codec, scores int) {
	c.Check(set.Funded <= len(set.Slots) && set.Stride >= 1)
	if set.Reader == nil {
		c.Check(len(set.Slots) == 0 && len(set.specials) == 0)
		return
	}
	c.Check(len(set.specials) > 0 && set.specials[0].kind == rowsScore && len(set.Slots) <= set.Reader.SlotsUsed())
	if c.Err != nil {
		return
	}
	kept := len(set.specials[0].Past[0])
	c.Check(len(set.Now[0].Codes) == len(set.Now[1].Codes) && len(set.Now[0].Codes) >= len(set.Slots))
	seen := map[*kind]bool{}
	for _, s := range set.specials {
		c.Check(s.kind != slotScore && !seen[s.kind])
		c.Check(!s.kind.keeps && len(s.Past[0]) == 0 || len(s.Past[0]) == kept)
		seen[s.kind] = true
	}
	for i, s := range set.Slots {
		c.Check(s.kind == slotScore && s.Slot == i && len(s.Past[0]) == kept)
	}
	c.Check(seen[laplaceScore] == seen[gaussScore])
	for _, s := range set.All() {
		c.Check(s.id >= 0 && (!s.staked || int(s.id) < scores))
	}
}

// Frozen is a score that does not learn any more.
type Frozen struct {
	series    *Series
	statistic statistic
	binner    bins.Binner
}

// Freeze returns a copy of a score that does not learn any more.
func (s *Series) Freeze() *Frozen {
	w := &state.Codec{}
	s.statistic.state(w)
	f := &Frozen{s, s.kind.make(s.Slot), s.Binner}
	f.statistic.state(&state.Codec{Reading: true, Buf: w.Buf, Slots: math.MaxInt, Groups: math.MaxInt})
	return f
}

// Bin returns the bin of a result.
func (f *Frozen) Bin(r *Result) int { return f.binner.Bin(f.statistic.score(r)) }

// State describes the score, which is a copy of one of the set's.
func (f *Frozen) State(c *state.Codec, set *Set) {
	all := set.All()
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
		f.statistic = f.series.kind.make(f.series.Slot)
	}
	f.statistic.state(c)
}

// Size returns about how many bytes of memory the score holds, without its table.
func (s *Series) Size() int {
	n := int(unsafe.Sizeof(Series{})) + 8*(cap(s.Past[0])+cap(s.Past[1])) + 10*cap(s.Binner.Edges)
	if m, ok := s.statistic.(sizer); ok {
		n += m.size()
	}
	return n
}
