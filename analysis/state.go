package analysis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// stateVersion changes whenever the state's form, or what is done with it, does: a state is restored by the version that
// saved it or not at all.
const stateVersion = 10

const stateMagic = "dpwatch audit\x00"

// MarshalBinary saves the whole state of an audit: restored, it goes on bit for bit as if it had not been interrupted.
// The state holds results (counts, kept values, a few rows) and needs the protection of the raw data.
func (a *Audit) MarshalBinary() ([]byte, error) {
	c := &state.Codec{Buf: []byte(stateMagic)}
	c.Buf = append(c.Buf, stateVersion)
	for a.climb(); a.front != a.claimAt && a.front < len(a.grid) && a.climbed < len(a.book.epochs); {
		a.step()
	}
	a.state(c)
	if c.Err != nil {
		return nil, c.Err
	}
	return binary.LittleEndian.AppendUint64(c.Buf, crc64.Checksum(c.Buf, crc64.MakeTable(crc64.ECMA))), nil
}

// UnmarshalBinary restores a state that [Audit.MarshalBinary] saved, in place of whatever the audit held. Anything else
// gives an error, and leaves the audit as it was.
func (a *Audit) UnmarshalBinary(data []byte) error {
	head := len(stateMagic) + 1
	if len(data) < head+8 || string(data[:len(stateMagic)]) != stateMagic {
		return errors.New("not a saved audit")
	}
	if v := data[head-1]; v != stateVersion {
		return fmt.Errorf("the audit was saved in form %d, this version reads form %d: start the audit anew", v, stateVersion)
	}
	body, sum := data[:len(data)-8], binary.LittleEndian.Uint64(data[len(data)-8:])
	if crc64.Checksum(body, crc64.MakeTable(crc64.ECMA)) != sum {
		return state.ErrDamaged
	}
	return a.restore(body[head:])
}

// restore reads the body of a state.
func (a *Audit) restore(body []byte) error {
	c := &state.Codec{Reading: true, Buf: body}
	fresh := &Audit{}
	fresh.state(c)
	if c.Err == nil && len(c.Buf) > 0 {
		c.Fail()
	}
	if c.Err == nil {
		fresh.verify(c)
	}
	if c.Err != nil {
		return c.Err
	}
	fresh.climbed, fresh.drawn = len(fresh.book.epochs), len(fresh.path)
	fresh.placeBets()
	*a = *fresh
	return nil
}

// state describes the whole state. What follows from the claim and the options is computed anew.
func (a *Audit) state(c *state.Codec) {
	c.All(&a.claim.Epsilon, &a.claim.Delta)
	a.opts.state(c)
	if c.Reading {
		if c.Err == nil && validate(a.claim, a.opts) != nil {
			c.Fail()
		}
		if c.Err != nil {
			return
		}
		a.mix = newMixtures(a.opts.NoClaim)
		a.grid, a.claimAt = eprocess.NewGrid(a.claim.Epsilon, a.opts.NoClaim)
	}
	for _, x := range []*int{
		&a.pairs, &a.detectedAt, &a.nextTurn, &a.nextLook, &a.nextHold, &a.front, &a.stride, &a.divideAt, &a.layoutAt,
		&a.funded, &a.failures[0], &a.failures[1], &a.unmatched, &a.monotony.pairs,
	} {
		state.Num(c, x)
		c.Check(*x >= 0 && *x <= 1<<53)
	}
	f := &a.first
	c.All(&f.pairs, &f.detectedAt, &f.kept, &f.relation, &f.slot, &f.lower, &f.level, &f.ratio)
	c.Check(f.pairs >= 0 && f.pairs <= a.pairs && f.detectedAt >= 0 && f.detectedAt <= f.pairs && f.kept >= 0)
	c.Check(f.pairs == 0 || f.level >= 1 && f.level <= ConfirmationLevel)
	c.Check(f.relation >= -1 && f.relation < relationCount && f.slot >= 0)
	a.threshold = a.wealthNeeded()
	c.Bool(&a.misfit)
	for w := range 2 {
		c.All(&a.monotony.first[w], &a.monotony.broken[w], &a.now[w].codes)
	}
	state.List(c, &a.path, func(p *PathPoint) { c.All(&p.Pairs, &p.Wealth, &p.Line) })
	a.pointers(c)
}

// pointers describes what hangs together: tables belong to scores and to epochs, errors to the audit and its reader.
func (a *Audit) pointers(c *state.Codec) {
	if c.Reading {
		a.errors = code.NewDictionary(code.FirstError, code.OtherError)
		a.climber = &process{}
	}
	a.errors.State(c)
	c.Check(a.errors.First == code.FirstError && a.errors.Rest == code.OtherError)
	tables := a.tables(c)
	c.Optional(a.reader != nil, func() { a.reader = &reader{slots: map[string]int{}, errors: a.errors, salt: a.opts.Salt} }, func() {
		a.reader.state(c)
	})
	if a.reader != nil {
		c.Groups = len(a.reader.labels)
	}
	state.List(c, &a.slots, func(s **series) { made(c, s).state(c, tables) })
	c.Slots = len(a.slots)
	state.List(c, &a.specials, func(s **series) { made(c, s).state(c, tables) })
	state.List(c, &a.book.stakes, func(s *stake) { s.state(c, a.mix[:]) })
	state.Num(c, &a.book.places)
	state.List(c, &a.book.epochs, func(e **epoch) { made(c, e).state(c, tables) })
	made(c, &a.epoch).state(c, tables)
	a.lead.process.state(c)
	c.Float(&a.lead.latest)
	a.climber.state(c)
	a.ranges.state(c)
	a.orders.state(c)
	a.certificateState(c)
	state.List(c, &a.retained, func(p *retained) {
		outcomeState(c, &p.worlds[0])
		outcomeState(c, &p.worlds[1])
		c.Bool(&p.cut)
	})
	a.repeats.state(c)
}

// made returns what a pointer refers to; when a state is read, a new zero value.
func made[T any](c *state.Codec, p **T) *T {
	if c.Reading {
		*p = new(T)
	}
	return *p
}

func (o *Options) state(c *state.Codec) {
	c.All(&o.Confidence, &o.NoClaim, (*string)(&o.Deterministic), &o.Unordered, &o.PriorOdds, &o.BreachOdds)
	c.All(&o.MaxTrials, &o.Buckets, &o.MinCount, &o.MaxSlots, &o.Salt)
}

// tables are all tables in use, each once; scores and epochs refer to them by number.
func (a *Audit) tables(c *state.Codec) []*table {
	var all []*table
	if !c.Reading {
		known := map[*table]bool{nil: true}
		add := func(t *table) {
			if !known[t] {
				known[t] = true
				all = append(all, t)
			}
		}
		for _, e := range append(slices.Clone(a.book.epochs), a.epoch) {
			for _, en := range e.entries {
				add(en.table)
			}
		}
		for _, s := range a.all() {
			add(s.table)
		}
	}
	state.List(c, &all, func(t **table) { made(c, t).state(c) })
	return all
}

// tableRef describes a table by its number; 0 is nil.
func tableRef(c *state.Codec, t **table, all []*table) {
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

func (t *table) state(c *state.Codec) {
	c.All(&t.numeric, &t.pairs)
	for w := range 2 {
		c.Counts(&t.before[w])
		c.Counts(&t.during[w])
	}
	c.Bool(&t.lopsided)
	n := len(t.before[0])
	c.Check(n > 0 && n <= maxBins && t.numeric > 0 && t.numeric <= n && t.pairs >= 0)
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

func (s *series) state(c *state.Codec, tables []*table) {
	k := slices.Index(kinds[:], s.kind)
	state.Num(c, &k)
	state.Num(c, &s.slot)
	if c.Check(k >= 0 && k < len(kinds)); c.Err != nil {
		return
	}
	if c.Reading {
		s.kind, s.statistic = kinds[k], kinds[k].make(s.slot)
	}
	s.statistic.state(c)
	c.All((*int)(&s.id), &s.learned, &s.staked, &s.shared)
	s.binner.state(c)
	tableRef(c, &s.table, tables)
	w := &s.watch
	c.All(&s.past[0], &s.past[1], &w.seen, &w.changes, &w.precise, &w.first[0], &w.first[1], &w.last, &w.difference, &w.sum)
	s.independence.state(c)
	c.Check(s.learned >= 0 && len(s.past[0]) == len(s.past[1]))
	c.Check(s.table == nil || s.table.bins() == s.binner.bins() && s.table.numeric == s.binner.numeric())
	c.Check(s.kind != revealScore || s.table == nil || s.table.bins() == s.table.numeric+2*rareKinds+1)
}

// state describes a stake; its mixture is one of those given.
func (s *stake) state(c *state.Codec, all []eprocess.Mixture) {
	state.List(c, &s.views, func(v *view) { state.Num(c, v); c.Check(*v <= sorted) })
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

func (e *epoch) state(c *state.Codec, tables []*table) {
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
