package score

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/exact"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Set holds the scores of one audit under one layout. It reads pairs of results, learns from them, and divides the
// wealth among the scores. Before the layout is known it is zero except for Errors and Stride. It is not safe for
// concurrent use.
type Set struct {
	Input
	Funded int // slots that had a stake when wealth was shared out last
}

// NewSet returns the scores of a layout, which have learned nothing. seen are the results from which the layout was
// learned.
func NewSet(r *results.Reader, errors *code.Dictionary, whole *exact.Answers, seen []*outcome.Outcome, opt Options) Set {
	set := Set{Input: Input{Layout: Layout{Reader: r, Errors: errors}, Exact: whole, Stride: 1, Options: opt}}
	settings := settingsOf(&r.Layout, seen, opt.Unordered)
	for _, k := range kinds {
		if k.where&settings != 0 && !(k.lowBits && opt.LowBits == Left) {
			set.specials = append(set.specials, newSeries(k, 0))
		}
	}
	return set
}

// Pair is a pair of results: on D0 and on D1.
type Pair struct {
	Results [2]*outcome.Outcome
	Hashes  [2]uint64 // of whole results
	Again   bool      // it was read before, by another layout
	Number  int       // of pairs so far, with this one
	Most    int       // pairs that are read at most, an estimate
}

// Read turns a pair into codes, and sets Now.
func (set *Set) Read(p *Pair) {
	r := set.Reader
	for w, o := range p.Results {
		n := &set.Now[w]
		n.Codes, n.rows, n.joint = r.Read(o, n.Codes), r.RowsCode(o), nil
		n.order = append(n.order[:0], r.Order...)
		n.form, n.cells = r.FormCode(o), r.Cells()
	}
	if p.Again {
		set.Now[0].exact, set.Now[1].exact = 0, 0
	} else {
		scores := set.Exact.Read(p.Results)
		set.Now[0].exact, set.Now[1].exact = scores[0], scores[1]
	}
	for n := &set.Now[0]; len(n.Codes) < len(set.Now[1].Codes); {
		n.Codes = append(n.Codes, r.Filling(p.Results[0]))
	}
	set.grow()
	for w, x := range p.Hashes {
		set.Now[w].recalled, set.Now[w].ranges = set.Repeats.recall(x), nil
		if len(set.Slots) == 1 {
			set.Now[w].ranges = &set.ranges
		}
	}
}

// Count counts the pair that was read, and keeps it for learning.
func (set *Set) Count(p *Pair) {
	kept := p.Number%set.Stride == 0
	room := min(set.keep(), p.Most/set.Stride)
	for i, s := range set.Slots {
		c0, c1 := set.Now[0].Codes[i], set.Now[1].Codes[i]
		s.count(c0, c1)
		if kept {
			s.reserve(room)
			s.push(c0, c1)
		}
		s.Independence.Add(c0, c1)
		if !s.Shared && s.watch.add(c0, c1) {
			s.Shared = true
		}
	}
	if s := set.specials.ofKind(orderScore); s != nil {
		set.orders.add([2][]int32{set.Now[0].order, set.Now[1].order}, &s.Independence)
	}
	if !p.Again {
		set.Exact.Count()
	}
	for _, s := range set.specials {
		if s.Table == nil && !s.kind.keeps {
			continue
		}
		c0, c1 := s.statistic.score(&set.Now[0]), s.statistic.score(&set.Now[1])
		s.count(c0, c1)
		if kept && s.kind.keeps {
			s.push(c0, c1)
		}
	}
	if len(set.Slots) == 1 {
		set.ranges.add(set.Now[0].Codes[0], set.Now[1].Codes[0])
	}
	for w, x := range p.Hashes {
		set.Repeats.add(w, x, slices.ContainsFunc(set.Now[w].Codes, code.IsNumber))
	}
	for kept && len(set.specials[0].Past[0]) >= set.keep() {
		set.thin()
	}
}

// grow makes series for keys that came for the first time. Before, they were absent.
func (set *Set) grow() {
	for len(set.Slots) < len(set.Now[0].Codes) {
		s := newSeries(slotScore, len(set.Slots))
		for w := range s.Past {
			s.Past[w] = make([]code.Code, len(set.specials[0].Past[w]), 2*len(set.specials[0].Past[w])+8)
			for i := range s.Past[w] {
				s.Past[w][i] = code.Category(code.Absent)
			}
		}
		set.Slots = append(set.Slots, s)
	}
}

// Bounds on the past that is kept for learning.
const (
	maxKeptCells = 1 << 21 // pairs times slots: 32 MiB of codes
	maxKeptPairs = 1 << 17
	minKeptPairs = 256
)

// keep is the number of pairs at which the kept past is thinned.
func (set *Set) keep() int {
	return min(max(maxKeptCells/max(1, len(set.Slots)), minKeptPairs), maxKeptPairs)
}

// thin drops half of the kept pairs, so that memory stays bounded.
func (set *Set) thin() {
	set.Stride *= 2
	for _, s := range set.All() {
		s.thin()
	}
}

// Named returns the score with an id, nil for none. Those apart have ids of their own.
func (set *Set) Named(id book.ScoreID) *Series {
	for _, list := range [2][]*Series{set.specials, set.Slots} {
		for _, s := range list {
			if s.staked && s.id == id && !set.apart(s) {
				return s
			}
		}
	}
	return nil
}

// OrderEvidence returns the log of the evidence that the orders of rows, if these were bet on, depend on each other.
func (set *Set) OrderEvidence() (evidence float64, bet bool) {
	if s := set.specials.ofKind(orderScore); s != nil && set.orders.bet {
		return s.Independence.Evidence(false), true
	}
	return 0, false
}
