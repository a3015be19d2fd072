package exact

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// This file looks for cells that depend on each other: the history of each is a bit for each of its latest results. Two
// whose histories coincide, or are each other's opposite, are a candidate: whether they are equal now, and their
// difference, are questions.

// history are the latest bits of a cell on one world.
type history struct {
	bits uint64
	n    uint8
}

const historyBits = 48

func (h *history) push(one bool) {
	h.bits <<= 1
	if one {
		h.bits |= 1
	}
	h.n = min(h.n+1, historyBits)
}

// latest is the value of a cell in a result.
type latest struct {
	linked bool // to another cell
	stamp  int  // of the result
	one    bool
	text   bool
	n      number
	hash   uint64
	first  uint64 // hash of the first value of all
}

// bit is one of a cell's history.
type bit struct {
	c   *cell
	one bool
}

// readBit notes the bit of a cell: whether its number is above the middle one of the first, or its value is the first.
func (a *Answers) readBit(c *cell, v *outcome.Value, r *result) {
	l := &c.now
	switch {
	case v.Kind == outcome.Number && len(c.edges) > 0 && v.Num == v.Num:
		n := number{x: v.Num}
		middle := &c.edges[len(c.edges)/2]
		if middle.text != "" || l.linked {
			n = numberOf(v.Num, v.Text)
		}
		l.one, l.text, l.n = middle.x < n.x || middle.x == n.x && middle.compare(n) <= 0, false, n
	case v.Kind == outcome.Number && len(v.Text) == 0, v.Kind == outcome.Text && len(v.Text) > chunk:
		return
	default:
		h := v.Hash()
		if l.first == 0 {
			l.first = h
		}
		l.one, l.text, l.hash = h == l.first, true, h
	}
	l.stamp = a.stamp
	r.bits = append(r.bits, bit{c, l.one})
}

// maxCandidates is the most pairs of cells that are asked about.
const maxCandidates = 60

// pairsOfCells are the candidates.
type pairsOfCells struct {
	all  []candidate
	next int // pairs at which the next ones are searched for
}

type candidate struct {
	a, b *cell
	slot int32
	hot  bool // a question about it has gained something
}

// read reads the candidates of a result whose cells were read.
func (p *pairsOfCells) read(a *Answers, r *result) {
	for i := range p.all {
		k := &p.all[i]
		x, y := &k.a.now, &k.b.now
		if x.stamp != a.stamp || y.stamp != a.stamp {
			continue
		}
		if a.depth != whole && !k.hot {
			continue
		}
		equal := 0
		if x.one == y.one {
			equal = 1
		}
		r.answer(together, k.slot, equal)
		h := outcome.Mix(outcome.Mix(k.a.id, k.b.id), ofPair)
		switch {
		case x.text || y.text:
			h = outcome.Mix(h, outcome.Mix(x.hash, y.hash))
		default:
			h = outcome.Mix(h, differenceOf(x.n, y.n))
		}
		r.answer(together, k.slot+1, int(a.seen.recall(h)))
		r.seen = append(r.seen, h)
	}
}

// maxDigits is the most digits of a number whose differences are exact.
const maxDigits = 1 << 10

// differenceOf returns a hash of the difference of two numbers: exact for integers, of ten digits for others, whose last
// ones are those of the engine's rounding.
func differenceOf(x, y number) uint64 {
	if x.text != "" || y.text != "" {
		var d [2]big.Int
		fine := true
		for i, n := range [2]number{x, y} {
			text := strings.TrimSpace(n.text)
			if text == "" {
				big.NewFloat(n.x).Int(&d[i])
				fine = fine && n.x == math.Trunc(n.x)
				continue
			}
			if fine = fine && len(text) <= maxDigits; fine {
				_, fine = d[i].SetString(text, 10)
			}
		}
		if fine {
			return outcome.HashText(d[0].Sub(&d[0], &d[1]).String(), ofNumber)
		}
	}
	d := x.x - y.x
	if x.x == math.Trunc(x.x) && y.x == math.Trunc(y.x) {
		return math.Float64bits(d + 0)
	}
	_, e := math.Frexp(max(math.Abs(x.x), math.Abs(y.x), 1e-300))
	unit := math.Ldexp(1, e-32)
	return math.Float64bits(math.Round(d/unit)*unit + 0)
}

// search looks for candidates in the histories of the cells.
func (p *pairsOfCells) search(a *Answers) {
	if a.pairs < 32 || a.pairs < p.next || len(p.all) == maxCandidates {
		return
	}
	p.next = a.pairs + max(16, a.pairs/8)
	var near []distance
	for w := range 2 {
		near = p.coincide(a, w, near)
	}
	slices.SortFunc(near, distance.compare)
	for _, d := range near {
		if len(p.all) == maxCandidates {
			return
		}
		if slices.ContainsFunc(p.all, func(k candidate) bool { return k.a.id == d.a && k.b.id == d.b }) {
			continue
		}
		slot := a.asked[together].take()
		if slot < 0 {
			return
		}
		k := candidate{a: a.cells[d.a], b: a.cells[d.b], slot: slot}
		k.a.now.linked, k.b.now.linked = true, true
		p.all = append(p.all, k)
	}
}

// distance is in how many of their bits the histories of two cells differ.
type distance struct {
	bits int
	a, b uint64
}

func (d distance) compare(e distance) int {
	switch {
	case d.bits != e.bits:
		return d.bits - e.bits
	case d.a != e.a:
		return less(d.a, e.a)
	}
	return less(d.b, e.b)
}

func less(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// coincide appends the pairs of cells whose histories on a world nearly coincide. Cells that share a quarter of their bits
// are compared.
func (p *pairsOfCells) coincide(a *Answers, w int, near []distance) []distance {
	const least, crowd = 24, 40
	length := 0
	for _, c := range a.cells {
		length = max(length, int(c.past[w].n)/4*4)
	}
	if length < least {
		return near
	}
	type band struct {
		k    int
		bits uint64
	}
	bands := map[band][]*cell{}
	for _, c := range a.cells {
		h := c.past[w].bits & (1<<length - 1)
		if ones := bits.OnesCount64(h); int(c.past[w].n) < length || ones <= length/5 || ones >= length-length/5 {
			continue
		}
		quarter := uint64(1)<<(length/4) - 1
		for k := range 4 {
			x := h >> (k * length / 4) & quarter
			b := band{k, min(x, x^quarter)}
			bands[b] = append(bands[b], c)
		}
	}
	for _, cells := range bands {
		slices.SortFunc(cells, func(c, d *cell) int { return less(c.id, d.id) })
		for i, c := range cells {
			for _, d := range cells[i+1 : min(i+crowd, len(cells))] {
				n := bits.OnesCount64((c.past[w].bits ^ d.past[w].bits) & (1<<length - 1))
				if n = min(n, length-n); n <= length/6 {
					near = append(near, distance{n, c.id, d.id})
				}
			}
		}
	}
	return near
}

// forget drops the candidates whose cells are not asked about any more.
func (p *pairsOfCells) forget(a *Answers) {
	left := p.all[:0]
	for _, k := range p.all {
		if a.cells[k.a.id] == k.a && a.cells[k.b.id] == k.b {
			left = append(left, k)
		} else {
			a.asked[together].release(k.slot)
		}
	}
	clear(p.all[len(left):])
	p.all = left
}
