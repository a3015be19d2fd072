package analysis

import (
	"maps"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/internal/textnumber"
)

// state describes the reader.
func (r *reader) state(c *codec) {
	c.all(&r.width, &r.maxKeys, &r.reading, &r.keyed, &r.ordinal, &r.overflow, &r.duplicates)
	c.ints(&r.keys)
	c.ints(&r.measures)
	list(c, &r.forms, func(f *textnumber.Form) { formState(c, f) })
	c.ints(&r.stamp)
	list(c, &r.names, c.text)
	list(c, &r.labels, c.withheld)
	list(c, &r.words, func(d **dictionary) {
		if c.reading {
			*d = newDictionary(firstText, otherText)
		}
		(*d).state(c)
		c.check((*d).first == firstText && (*d).rest == otherText)
	})
	keys := slices.Sorted(maps.Keys(r.slots))
	list(c, &keys, func(k *string) {
		c.text(k)
		v := r.slots[*k]
		num(c, &v)
		c.check(v >= 0 && v < len(r.labels))
		if c.reading && c.err == nil {
			r.slots[*k] = v
		}
	})
	c.check(r.width >= -1 && r.maxKeys >= 1 && len(r.labels) <= r.maxKeys && len(r.stamp) == len(r.labels))
	c.check(len(r.words) == r.cells() && len(r.slots) == len(r.labels) && len(r.names) == max(r.width, 0))
	r.checkForms(c)
	for _, columns := range [][]int{r.keys, r.measures} {
		for _, x := range columns {
			c.check(x >= 0 && x < r.width)
		}
	}
}

// certificateState describes the event of the fixed budget; its series is one of the audit's.
func (a *Audit) certificateState(c *codec) {
	c.optional(a.certificate != nil, func() { a.certificate = &certificate{} }, func() {
		f := a.certificate
		all := a.all()
		n := slices.Index(all, f.series)
		num(c, &n)
		if c.reading {
			if n < 0 || n >= len(all) {
				c.fail()
				return
			}
			f.series = all[n]
		}
		f.binner.state(c)
		if c.reading {
			f.statistic = f.series.kind.make(f.series.slot)
		}
		f.statistic.state(c)
		c.all(&f.hits[0], &f.hits[1], &f.set, &f.heavy, &f.pairs)
		c.check(f.heavy == 0 || f.heavy == 1)
		c.check(f.pairs >= 0 && f.hits[0] >= 0 && f.hits[1] >= 0 && f.hits[0] <= f.pairs && f.hits[1] <= f.pairs)
		c.optional(f.event != nil, func() { f.event = &Event{} }, func() {
			f.event.state(c)
		})
	})
}

// state describes what is known of the dependence of trials.
func (d *independence) state(c *codec) {
	d.settle()
	c.all(&d.seen, &d.until, &d.differ)
	c.check(d.seen >= 0 && d.until >= 0)
	for w := range d.marks {
		m := &d.marks[w]
		c.all(&m.atom, &m.hasAtom, &m.middle, &m.far)
		num(c, &m.known)
		latest := d.recent[w]
		for i := range maxLag { // the bits of the latest trials, the latest first
			var b uint8
			for bit := range latest {
				b |= uint8(latest[bit]>>i&1) << bit
			}
			num(c, &b)
			c.check(b < 2*known)
			for bit := range latest {
				d.recent[w][bit] = d.recent[w][bit]&^(1<<i) | uint64(b>>bit&1)<<i
			}
		}
		for bit := range d.later[w] {
			c.float(&d.closed[w][bit])
			c.tally(d.later[w][bit][:])
		}
		c.all(&d.first[w], &d.moved[w], &d.class[w])
	}
	for r := range d.counts {
		for bit := range d.counts[r] {
			c.tally(d.counts[r][bit][:])
		}
	}
}

func (r *repeats) state(c *codec) {
	num(c, &r.thinned)
	c.check(r.thinned < 64)
	for w := range r.different {
		c.all(&r.echoes[w], &r.twice[w])
		var keys []uint64
		for k, n := range r.seen {
			if n[w] > 0 {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		list(c, &keys, func(k *uint64) {
			c.u64(k)
			n := r.seen[*k]
			num(c, &n[w])
			c.check(n[w] > 0)
			if c.reading && c.err == nil {
				if r.seen == nil {
					r.seen = map[uint64][2]int32{}
				}
				r.seen[*k] = n
				r.different[w]++
			}
		})
		c.check(r.echoes[w] >= 0 && r.twice[w] >= 0 && r.different[w] <= maxRepeats)
	}
}

func (b *ranges) state(c *codec) {
	for w := range b.n {
		c.all(&b.n[w], &b.low[w], &b.top[w])
		c.check(b.n[w] >= 0)
	}
}

func (e *Event) state(c *codec) {
	c.all(&e.Score, &e.Direction, (*string)(&e.Kind), &e.Column, (*string)(&e.Tail))
	c.withheld(&e.Partition)
	c.withheld(&e.Description)
	c.all((*float64)(&e.D0), (*float64)(&e.D1))
}

func outcomeState(c *codec, o *Outcome) {
	c.text(&o.SQLState)
	list(c, &o.Columns, func(x *Column) { c.text(&x.Name); c.bool(&x.Discrete) })
	list(c, &o.Rows, func(row *[]Value) {
		list(c, row, func(v *Value) { num(c, &v.Kind); c.float(&v.Num); c.text(&v.Text) })
	})
}

// verify checks what ties the parts of a restored state together, so that nothing in it can lead out of a list.
func (a *Audit) verify(c *codec) {
	c.check(a.pairs >= a.detectedAt && a.stride >= 1 && a.front <= len(a.grid) && a.funded <= len(a.slots))
	c.check(a.claimAt < 0 || a.front <= a.claimAt || a.detectedAt > 0)
	c.check(len(a.path) == len(a.book.epochs))
	places := 0
	for i := range a.book.stakes {
		s := &a.book.stakes[i]
		c.check(s.at == places)
		places += s.size()
	}
	c.check(places == a.book.places)
	c.check(len(a.lead.logw) == a.book.places && len(a.lead.sums) == len(a.book.stakes))
	a.verifyProcess(c, &a.lead.process)
	a.verifyProcess(c, a.climber)
	for _, e := range append(slices.Clone(a.book.epochs), a.epoch) {
		a.verifyEpoch(c, e)
	}
	a.verifySeries(c)
	c.check(len(a.retained) <= firstRetained+latestRetained)
}

func (a *Audit) verifyProcess(c *codec, p *process) {
	c.check(len(p.logw) <= a.book.places && len(p.sums) <= len(a.book.stakes))
	at := a.claim.Epsilon
	if p == a.climber {
		at = a.grid[min(a.front, len(a.grid)-1)]
	} else if a.claimAt >= 0 {
		at = a.grid[a.claimAt]
	}
	h := eprocess.NewNull(at, a.claim.Delta)
	c.check(p.Null == h)
	for _, list := range [][]float64{p.logw, p.sums, {p.cash, p.highest}} {
		for _, x := range list {
			c.check(!math.IsNaN(x) && !math.IsInf(x, 1))
		}
	}
}

func (a *Audit) verifyEpoch(c *codec, e *epoch) {
	known := func(id scoreID) { c.check(id >= 0 && int(id) < len(a.book.stakes)) }
	fraction := func(x float64) { c.check(x >= 0 && x <= 1) }
	for _, id := range e.retire {
		known(id)
	}
	for _, list := range [][]grant{e.grants, e.lend, e.shift} {
		for _, g := range list {
			known(g.score)
			fraction(g.fraction)
		}
	}
	c.check(len(e.priors) == len(e.shift))
	for _, x := range e.priors {
		fraction(x)
	}
	fraction(e.share)
	c.check(!math.IsNaN(e.opened) && !math.IsInf(e.opened, 1) && !math.IsNaN(e.claim) && !math.IsInf(e.claim, 1))
	for _, en := range e.entries {
		known(en.score)
		c.check(en.scope <= claimAlone)
		if c.err == nil {
			law := &a.book.stakes[en.score].mix[0] == &a.mix[lawPrior][0]
			c.check(law == (en.table.laws != nil))
			paired := &a.book.stakes[en.score].mix[0] == &a.mix[pairedPrior][0]
			c.check(paired == (en.table.paired != nil))
		}
	}
}

func (a *Audit) verifySeries(c *codec) {
	if a.reader == nil {
		c.check(len(a.slots) == 0 && len(a.specials) == 0 && a.certificate == nil)
		return
	}
	c.check(len(a.specials) > 0 && a.specials[0].kind == rowsScore && len(a.slots) <= a.reader.slotsUsed())
	if c.err != nil {
		return
	}
	kept := len(a.specials[0].past[0])
	c.check(len(a.now[0].codes) == len(a.now[1].codes) && len(a.now[0].codes) >= len(a.slots))
	seen := map[*kind]bool{}
	for _, s := range a.specials {
		c.check(s.kind != slotScore && !seen[s.kind])
		c.check(!s.kind.keeps && len(s.past[0]) == 0 || len(s.past[0]) == kept)
		seen[s.kind] = true
	}
	for i, s := range a.slots {
		c.check(s.kind == slotScore && s.slot == i && len(s.past[0]) == kept)
	}
	c.check(seen[laplaceScore] == seen[gaussScore])
	for _, s := range a.all() {
		c.check(s.id >= 0 && (!s.staked || int(s.id) < len(a.book.stakes)))
	}
}

// placeBets places the bets of the epoch at hand again; they follow from its tables.
func (a *Audit) placeBets() {
	n := 0
	for _, en := range a.epoch.entries {
		s := &a.book.stakes[en.score]
		for v := range s.views {
			a.lead.bets = append(a.lead.bets, bet{})
			a.lead.bets[n].place(a.lead.Null, en, s, v, &a.book)
			n++
		}
	}
}
