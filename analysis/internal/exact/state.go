package exact

import (
	"maps"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// State describes what is known of the answers. What was read of the latest pair is no part of it.
func (a *Answers) State(c *state.Codec) {
	c.All(&a.unordered, &a.coarse, &a.begun, &a.hot, &a.pairs, &a.longest)
	c.Ints(&a.keys)
	c.Check(slices.IsSorted(a.keys) && (len(a.keys) == 0 || a.keys[0] >= 0) && a.pairs >= 0)
	for r := range a.asked {
		if c.Reading {
			a.asked[r] = newQuestions(reading(r))
		}
		a.asked[r].state(c)
	}
	if c.Reading {
		a.cells = map[uint64]*cell{}
	}
	ids := slices.Sorted(maps.Keys(a.cells))
	state.List(c, &ids, func(id *uint64) {
		c.U64(id)
		if c.Reading {
			a.cells[*id] = &cell{id: *id}
		}
		a.cells[*id].state(c, a)
	})
	c.Check(len(ids) == len(a.cells))
	a.seen.state(c)
	a.values.state(c)
	a.linked.state(c, a)
	state.List(c, &a.texts, func(t *texts) {
		c.All(&t.all, &t.fresh, &t.known)
		c.Check(t.known >= 0 && t.fresh >= t.known && t.all >= t.fresh)
	})
	w := &a.window
	c.All(&w.start, &w.pairs)
	for world := range 2 {
		c.Tally(w.before[world][:])
		c.Tally(w.recent[world][:])
	}
	c.Check(w.start >= 0 && w.pairs >= 0)
}

func (q *questions) state(c *state.Codec) {
	c.All(&q.used, &q.slices, &q.phase, &q.wanted, &q.missed)
	c.Check(q.used >= 0 && q.used <= q.capacity && q.used%q.block == 0 && q.slices >= 1 && q.phase >= 0 && q.phase < q.slices && q.wanted >= 0)
	if c.Err != nil {
		return
	}
	if c.Reading {
		n := q.used
		for q.used = 0; q.used < n; {
			q.take()
		}
	}
	valid := func(slot int32) bool { return slot >= 0 && int(slot) < q.used }
	for w := range 2 {
		for _, counts := range [2][]uint16{q.counts[w][:q.used*q.answers], q.totals[w][:q.used]} {
			for i := range counts {
				state.Num(c, &counts[i])
				c.Check(counts[i] <= maxCount)
			}
		}
	}
	for i := range q.used {
		gain := float64(q.gains[i])
		c.Float(&gain)
		q.gains[i] = float32(gain)
	}
	slots := func(s *[]int32) {
		state.List(c, s, func(x *int32) {
			state.Num(c, x)
			if c.Check(valid(*x)); c.Err != nil {
				*x = 0
			}
		})
	}
	slots(&q.free)
	slots(&q.leads)
	for _, at := range q.free {
		c.Check(int(at)%q.block == 0)
	}
	c.Check(len(q.free) <= q.used && len(q.leads) <= most)
	for _, at := range q.leads {
		if c.Err == nil {
			q.best[at] = true
		}
	}
}

func (x *cell) state(c *state.Codec, a *Answers) {
	c.U64(&x.parent)
	state.Num(c, &x.column)
	c.Check(x.column >= Beside)
	slot := func(k reading, at *int32) {
		q := &a.asked[k]
		state.Num(c, at)
		c.Check(*at >= -1 && int(*at) < q.used && (*at < 0 || int(*at)%q.block == 0))
	}
	for k := range x.slots {
		slot(reading(k), &x.slots[k])
	}
	state.List(c, &x.warm, func(n *warmed) {
		c.All(&n.x, &n.text)
		state.Num(c, &n.world)
		c.Check(n.world < 2)
	})
	state.List(c, &x.edges, func(n *number) { c.All(&n.x, &n.text) })
	c.Check(len(x.warm) < warmNumbers && (len(x.edges) == 0 || len(x.edges) == edgeCount))
	c.Text(&x.first)
	c.All(&x.low, &x.high)
	c.Check(x.low >= 0 && x.high >= 0 && int(x.low)+int(x.high) <= len(x.first))
	for _, places := range []*[]int32{&x.front, &x.back} {
		state.List(c, places, func(at *int32) { slot(character, at) })
		c.Check(len(*places) <= maxPlaces)
	}
	for w := range x.past {
		c.U64(&x.past[w].bits)
		state.Num(c, &x.past[w].n)
		c.Check(x.past[w].n <= historyBits)
	}
	c.U64(&x.now.first)
	c.All(&x.hot, &x.fine, &x.text, &x.now.linked)
}

func (m *memory) state(c *state.Codec) {
	type entry struct {
		mark   int
		counts [2]uint8
	}
	var all []entry
	for i, mark := range m.marks {
		if mark != 0 {
			all = append(all, entry{int(mark), m.counts[i]})
		}
	}
	slices.SortFunc(all, func(x, y entry) int { return x.mark - y.mark })
	state.List(c, &all, func(e *entry) {
		state.Num(c, &e.mark)
		state.Num(c, &e.counts[0])
		state.Num(c, &e.counts[1])
		c.Check(e.mark&1 == 1 && e.mark > 0 && e.mark <= math.MaxUint32)
	})
	lost := m.lost
	state.Num(c, &lost)
	c.Check(len(all) <= maxMemory && lost >= 0)
	if c.Reading && c.Err == nil {
		*m = memory{lost: lost}
		for _, e := range all {
			m.counts[m.place(uint64(e.mark)<<32)] = e.counts
		}
	}
}

func (v *buckets) state(c *state.Codec) {
	c.All(&v.pairs, &v.next)
	c.Check(v.pairs >= 0 && v.pairs <= maxBucketPairs+1 && v.next >= 0)
	c.Optional(v.counts[0] != nil, func() { v.counts = [2][]uint16{make([]uint16, bucketCount), make([]uint16, bucketCount)} }, func() {
		for w := range v.counts {
			for b := range v.counts[w] {
				state.Num(c, &v.counts[w][b])
				c.Check(int(v.counts[w][b]) <= v.pairs)
			}
		}
	})
	state.List(c, &v.leads, func(l *lead) {
		c.All(&l.bucket, &l.present, &l.absent)
		c.Check(l.bucket >= 0 && l.bucket < bucketCount)
		if c.Err != nil {
			l.bucket = 0
		}
	})
	gain := float64(v.gain)
	c.Float(&gain)
	v.gain = float32(gain)
}

func (p *pairsOfCells) state(c *state.Codec, a *Answers) {
	state.Num(c, &p.next)
	state.List(c, &p.all, func(k *candidate) {
		var ids [2]uint64
		if !c.Reading {
			ids = [2]uint64{k.a.id, k.b.id}
		}
		c.U64(&ids[0])
		c.U64(&ids[1])
		state.Num(c, &k.slot)
		c.Bool(&k.hot)
		if c.Reading {
			k.a, k.b = a.cells[ids[0]], a.cells[ids[1]]
			q := &a.asked[together]
			c.Check(k.a != nil && k.b != nil && k.slot >= 0 && int(k.slot)%q.block == 0 && int(k.slot)+q.block <= q.used)
		}
	})
	c.Check(len(p.all) <= maxCandidates)
	if c.Err != nil {
		p.all = nil
	}
}
