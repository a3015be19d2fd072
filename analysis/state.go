package analysis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// stateVersion changes whenever the state's form, or what is done with it, does: a state is restored by the version that
// saved it or not at all.
const stateVersion = 10

const stateMagic = "dpwatch audit\x00"

// MarshalBinary saves the whole state of an audit: restored, it goes on bit for bit as if it had not been interrupted.
// The state holds results (counts, kept values, a few rows) and needs the protection of the raw data.
func (a *Audit) MarshalBinary() ([]byte, error) {
	c := &codec{buf: []byte(stateMagic)}
	c.buf = append(c.buf, stateVersion)
	for a.climb(); a.front != a.claimAt && a.front < len(a.grid) && a.climbed < len(a.book.epochs); {
		a.step()
	}
	a.state(c)
	if c.err != nil {
		return nil, c.err
	}
	return binary.LittleEndian.AppendUint64(c.buf, crc64.Checksum(c.buf, crc64.MakeTable(crc64.ECMA))), nil
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
		return errState
	}
	return a.restore(body[head:])
}

// restore reads the body of a state.
func (a *Audit) restore(body []byte) error {
	c := &codec{reading: true, buf: body}
	fresh := &Audit{}
	fresh.state(c)
	if c.err == nil && len(c.buf) > 0 {
		c.fail()
	}
	if c.err == nil {
		fresh.verify(c)
	}
	if c.err != nil {
		return c.err
	}
	fresh.climbed, fresh.drawn = len(fresh.book.epochs), len(fresh.path)
	fresh.placeBets()
	*a = *fresh
	return nil
}

// state describes the whole state. What follows from the claim and the options is computed anew.
func (a *Audit) state(c *codec) {
	c.all(&a.claim.Epsilon, &a.claim.Delta)
	a.opts.state(c)
	if c.reading {
		if c.err == nil && validate(a.claim, a.opts) != nil {
			c.fail()
		}
		if c.err != nil {
			return
		}
		a.mix = newMixtures(a.opts.NoClaim)
		a.grid, a.claimAt = eprocess.NewGrid(a.claim.Epsilon, a.opts.NoClaim)
	}
	for _, x := range []*int{
		&a.pairs, &a.detectedAt, &a.nextTurn, &a.nextLook, &a.nextHold, &a.front, &a.stride, &a.divideAt, &a.layoutAt,
		&a.funded, &a.failures[0], &a.failures[1], &a.unmatched, &a.monotony.pairs,
	} {
		num(c, x)
		c.check(*x >= 0 && *x <= 1<<53)
	}
	f := &a.first
	c.all(&f.pairs, &f.detectedAt, &f.kept, &f.relation, &f.slot, &f.lower, &f.level, &f.ratio)
	c.check(f.pairs >= 0 && f.pairs <= a.pairs && f.detectedAt >= 0 && f.detectedAt <= f.pairs && f.kept >= 0)
	c.check(f.pairs == 0 || f.level >= 1 && f.level <= ConfirmationLevel)
	c.check(f.relation >= -1 && f.relation < relationCount && f.slot >= 0)
	a.threshold = a.wealthNeeded()
	c.bool(&a.misfit)
	for w := range 2 {
		c.all(&a.monotony.first[w], &a.monotony.broken[w], &a.now[w].codes)
	}
	list(c, &a.path, func(p *PathPoint) { c.all(&p.Pairs, &p.Wealth, &p.Line) })
	a.pointers(c)
}

// pointers describes what hangs together: tables belong to scores and to epochs, errors to the audit and its reader.
func (a *Audit) pointers(c *codec) {
	if c.reading {
		a.errors = newDictionary(firstError, otherError)
		a.climber = &process{}
	}
	a.errors.state(c)
	c.check(a.errors.first == firstError && a.errors.rest == otherError)
	tables := a.tables(c)
	c.optional(a.reader != nil, func() { a.reader = &reader{slots: map[string]int{}, errors: a.errors, salt: a.opts.Salt} }, func() {
		a.reader.state(c)
	})
	if a.reader != nil {
		c.groups = len(a.reader.labels)
	}
	list(c, &a.slots, func(s **series) { made(c, s).state(c, tables) })
	c.slots = len(a.slots)
	list(c, &a.specials, func(s **series) { made(c, s).state(c, tables) })
	list(c, &a.book.stakes, func(s *stake) { s.state(c, a.mix[:]) })
	num(c, &a.book.places)
	list(c, &a.book.epochs, func(e **epoch) { made(c, e).state(c, tables) })
	made(c, &a.epoch).state(c, tables)
	a.lead.process.state(c)
	c.float(&a.lead.latest)
	a.climber.state(c)
	a.ranges.state(c)
	a.orders.state(c)
	a.certificateState(c)
	list(c, &a.retained, func(p *retained) {
		outcomeState(c, &p.worlds[0])
		outcomeState(c, &p.worlds[1])
		c.bool(&p.cut)
	})
	a.repeats.state(c)
}

// made returns what a pointer refers to; when a state is read, a new zero value.
func made[T any](c *codec, p **T) *T {
	if c.reading {
		*p = new(T)
	}
	return *p
}

func (o *Options) state(c *codec) {
	c.all(&o.Confidence, &o.NoClaim, (*string)(&o.Deterministic), &o.Unordered, &o.PriorOdds, &o.BreachOdds)
	c.all(&o.MaxTrials, &o.Buckets, &o.MinCount, &o.MaxSlots, &o.Salt)
}

// tables are all tables in use, each once; scores and epochs refer to them by number.
func (a *Audit) tables(c *codec) []*table {
	var all []*table
	if !c.reading {
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
	list(c, &all, func(t **table) { made(c, t).state(c) })
	return all
}

// tableRef describes a table by its number; 0 is nil.
func tableRef(c *codec, t **table, all []*table) {
	n := slices.Index(all, *t) + 1
	num(c, &n)
	if c.reading {
		*t = nil
		if n < 0 || n > len(all) {
			c.fail()
		} else if n > 0 {
			*t = all[n-1]
		}
	}
}

func (t *table) state(c *codec) {
	c.all(&t.numeric, &t.pairs)
	for w := range 2 {
		c.counts(&t.before[w])
		c.counts(&t.during[w])
	}
	c.bool(&t.lopsided)
	n := len(t.before[0])
	c.check(n > 0 && n <= maxBins && t.numeric > 0 && t.numeric <= n && t.pairs >= 0)
	c.check(len(t.before[1]) == n && len(t.during[0]) == n && len(t.during[1]) == n)
	c.optional(t.fixed != nil, func() { t.fixed = &events{} }, func() { t.fixed.state(c, n) })
	c.optional(t.laws != nil, func() { t.laws = &laws{} }, func() {
		for w := range t.laws {
			c.floats(&t.laws[w])
			c.check(len(t.laws[w]) == n && math.Abs(sumOf(t.laws[w])-1) < 1e-6)
			for _, p := range t.laws[w] {
				c.check(p >= 0 && p <= 1)
			}
		}
	})
	c.optional(t.paired != nil, func() { t.paired = &pairedTable{} }, func() {
		t.paired.events.state(c, n)
		for i := range t.paired.counts {
			c.tally(t.paired.counts[i][:])
		}
	})
}

func (e *events) state(c *codec, bins int) {
	for i := range e.toward {
		c.all(&e.toward[i], &e.live[i])
		c.check(bins == 64 || e.toward[i]>>bins == 0)
	}
	c.check(e.toward[0]&e.toward[1] == 0 && e.toward[0]&e.toward[2] == 0 && e.toward[1]&e.toward[2] == 0)
	c.float(&e.z2)
}

func (s *series) state(c *codec, tables []*table) {
	k := slices.Index(kinds[:], s.kind)
	num(c, &k)
	num(c, &s.slot)
	if c.check(k >= 0 && k < len(kinds)); c.err != nil {
		return
	}
	if c.reading {
		s.kind, s.statistic = kinds[k], kinds[k].make(s.slot)
	}
	s.statistic.state(c)
	c.all((*int)(&s.id), &s.learned, &s.staked, &s.shared)
	s.binner.state(c)
	tableRef(c, &s.table, tables)
	w := &s.watch
	c.all(&s.past[0], &s.past[1], &w.seen, &w.changes, &w.precise, &w.first[0], &w.first[1], &w.last, &w.difference, &w.sum)
	s.independence.state(c)
	c.check(s.learned >= 0 && len(s.past[0]) == len(s.past[1]))
	c.check(s.table == nil || s.table.bins() == s.binner.bins() && s.table.numeric == s.binner.numeric())
	c.check(s.kind != revealScore || s.table == nil || s.table.bins() == s.table.numeric+2*rareKinds+1)
}

// state describes a stake; its mixture is one of those given.
func (s *stake) state(c *codec, all []eprocess.Mixture) {
	list(c, &s.views, func(v *view) { num(c, v); c.check(*v <= sorted) })
	num(c, &s.at)
	n := 0
	for i, m := range all {
		if len(s.mix) > 0 && &m[0] == &s.mix[0] {
			n = i
		}
	}
	num(c, &n)
	if c.reading {
		if n < 0 || n >= len(all) {
			c.fail()
			return
		}
		s.mix = all[n]
	}
	c.check(len(s.views) > 0)
}

func (e *epoch) state(c *codec, tables []*table) {
	grants := func(g *grant) { c.all((*int)(&g.score), &g.fraction) }
	list(c, &e.retire, func(id *scoreID) { num(c, id) })
	c.all(&e.void, &e.anew)
	list(c, &e.grants, grants)
	list(c, &e.lend, grants)
	list(c, &e.shift, grants)
	c.all(&e.priors, &e.at, &e.share, &e.opened, &e.claim)
	list(c, &e.entries, func(en *entry) {
		num(c, &en.score)
		num(c, &en.scope)
		tableRef(c, &en.table, tables)
		c.check(en.table != nil)
	})
}

func (p *process) state(c *codec) {
	c.all(&p.Epsilon, &p.Ratio, &p.Delta, &p.cash, &p.highest, &p.below, &p.logw, &p.sums)
}
