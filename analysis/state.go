package analysis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"maps"
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
	c.options(&a.opts)
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
	c.pointers(a)
}

// pointers describes what hangs together: tables belong to scores and to epochs, errors to the audit and its reader.
func (c *codec) pointers(a *Audit) {
	if c.reading {
		a.errors = newDictionary(firstError, otherError)
		a.climber = &process{}
	}
	c.dictionary(a.errors)
	c.check(a.errors.first == firstError && a.errors.rest == otherError)
	tables := c.tables(a)
	c.reader(a)
	if a.reader != nil {
		c.groups = len(a.reader.labels)
	}
	list(c, &a.slots, func(s **series) { c.series(s, tables) })
	c.slots = len(a.slots)
	list(c, &a.specials, func(s **series) { c.series(s, tables) })
	list(c, &a.book.stakes, func(s *stake) { c.stake(a, s) })
	num(c, &a.book.places)
	list(c, &a.book.epochs, func(e **epoch) { c.epoch(e, tables) })
	c.epoch(&a.epoch, tables)
	c.process(&a.lead.process)
	c.float(&a.lead.latest)
	c.process(a.climber)
	c.ranges(&a.ranges)
	c.orders(&a.orders)
	c.certificate(a)
	list(c, &a.retained, func(p *retained) {
		c.outcome(&p.worlds[0])
		c.outcome(&p.worlds[1])
		c.bool(&p.cut)
	})
	c.repeats(&a.repeats)
}

func (c *codec) options(o *Options) {
	c.all(&o.Confidence, &o.NoClaim, (*string)(&o.Deterministic), &o.Unordered, &o.PriorOdds, &o.BreachOdds)
	c.all(&o.MaxTrials, &o.Buckets, &o.MinCount, &o.MaxSlots, &o.Salt)
}

// tables are all tables in use, each once; scores and epochs name them by number.
func (c *codec) tables(a *Audit) *[]*table {
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
	list(c, &all, c.table)
	return &all
}

// ref is a table by its number; 0 is nil.
func (c *codec) ref(t **table, all *[]*table) {
	n := slices.Index(*all, *t) + 1
	num(c, &n)
	if c.reading {
		*t = nil
		if n < 0 || n > len(*all) {
			c.fail()
		} else if n > 0 {
			*t = (*all)[n-1]
		}
	}
}

func (c *codec) table(p **table) {
	if c.reading {
		*p = &table{}
	}
	t := *p
	c.all(&t.numeric, &t.pairs)
	for w := range 2 {
		c.counts(&t.before[w])
		c.counts(&t.during[w])
	}
	c.bool(&t.lopsided)
	n := len(t.before[0])
	c.check(n > 0 && n <= maxBins && t.numeric > 0 && t.numeric <= n && t.pairs >= 0)
	c.check(len(t.before[1]) == n && len(t.during[0]) == n && len(t.during[1]) == n)
	c.optional(t.fixed != nil, func() { t.fixed = &events{} }, func() { c.events(t.fixed, n) })
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
		c.events(&t.paired.events, n)
		for i := range t.paired.counts {
			c.tally(t.paired.counts[i][:])
		}
	})
}

// optional is a part that may be missing.
func (c *codec) optional(there bool, alloc, body func()) {
	c.bool(&there)
	if !there || c.err != nil {
		return
	}
	if c.reading {
		alloc()
	}
	body()
}

func (c *codec) events(e *events, bins int) {
	for i := range e.toward {
		c.all(&e.toward[i], &e.live[i])
		c.check(bins == 64 || e.toward[i]>>bins == 0)
	}
	c.check(e.toward[0]&e.toward[1] == 0 && e.toward[0]&e.toward[2] == 0 && e.toward[1]&e.toward[2] == 0)
	c.float(&e.z2)
}

func (c *codec) binner(b *binner) {
	c.floats(&b.edges)
	list(c, &b.categories, c.label)
	c.bool(&b.crowded)
	c.check(b.bins() <= maxBins)
}

func (c *codec) series(p **series, tables *[]*table) {
	if c.reading {
		*p = &series{}
	}
	s := *p
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
	c.binner(&s.binner)
	c.ref(&s.table, tables)
	w := &s.watch
	c.all(&s.past[0], &s.past[1], &w.seen, &w.changes, &w.precise, &w.first[0], &w.first[1], &w.last, &w.difference, &w.sum)
	c.independence(&s.independence)
	c.check(s.learned >= 0 && len(s.past[0]) == len(s.past[1]))
	c.check(s.table == nil || s.table.bins() == s.binner.bins() && s.table.numeric == s.binner.numeric())
	c.check(s.kind != revealScore || s.table == nil || s.table.bins() == s.table.numeric+2*rareKinds+1)
}

// stake names its mixture.
func (c *codec) stake(a *Audit, s *stake) {
	list(c, &s.views, func(v *view) { num(c, v); c.check(*v <= sorted) })
	num(c, &s.at)
	n := 0
	for i, m := range a.mix {
		if len(s.mix) > 0 && &m[0] == &s.mix[0] {
			n = i
		}
	}
	num(c, &n)
	if c.reading {
		if n < 0 || n >= len(a.mix) {
			c.fail()
			return
		}
		s.mix = a.mix[n]
	}
	c.check(len(s.views) > 0)
}

func (c *codec) epoch(p **epoch, tables *[]*table) {
	if c.reading {
		*p = &epoch{}
	}
	e := *p
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
		c.ref(&en.table, tables)
		c.check(en.table != nil)
	})
}

func (c *codec) process(p *process) {
	c.all(&p.Epsilon, &p.Ratio, &p.Delta, &p.cash, &p.highest, &p.below, &p.logw, &p.sums)
}

func (c *codec) dictionary(d *dictionary) {
	c.all(&d.first, &d.rest)
	words := make([]string, len(d.words)) // as kept; the dictionary shortens them for display
	for w, id := range d.ids {
		words[id-d.first] = w
	}
	list(c, &words, c.text)
	c.check(len(words) <= maxCategories)
	if c.reading && c.err == nil {
		d.ids, d.words = map[string]int{}, nil
		for _, w := range words {
			d.code(w)
		}
		c.check(len(d.words) == len(words))
	}
	late := slices.Sorted(maps.Keys(d.late))
	list(c, &late, func(l *label) {
		c.label(l)
		w := d.late[*l]
		c.text(&w)
		if d.want([]label{*l}); c.reading {
			if _, ok := d.late[*l]; ok {
				d.late[*l] = w
			} else {
				c.fail()
			}
		}
	})
	c.check(len(d.late) <= maxLateWords)
}
