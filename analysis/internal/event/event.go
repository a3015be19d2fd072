package event

import (
	"math"
	"math/bits"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// View is an order in which the bins of a score are cut into events.
type View uint8

const (
	// Ascending cuts half-lines of the value; categories join the half-line where they help.
	Ascending View = iota
	// Folded cuts by the distance from the pooled median: noise of another scale.
	Folded
	// Sorted cuts by the smoothed ratio of the counts: any shape, and pure categories.
	Sorted
)

// Table counts the outcomes of one score by bin: the past that was learned from (before), and the block in
// which is bet (during). Numeric bins come first, in order of value, then categories.
type Table struct {
	Numeric int        // how many of the bins are numeric
	Pairs   int        // pairs behind before
	Before  [2][]int32 // per world
	During  [2][]int32

	Lopsided bool    // the score's law has no centre that halves it: nothing is gained from symmetric events
	Fixed    *Events // the events, where they are not learned from the counts
	Laws     *Laws   // the working alternative, where every bin is bet on
	Paired   *Paired // the counts of pairs, where the two trials of a pair may share their noise
}

// NewTable returns a table of zero counts.
func NewTable(numeric, bins int) *Table {
	c := make([]int32, 4*bins)
	return &Table{
		Numeric: numeric,
		Before:  [2][]int32{c[:bins:bins], c[bins : 2*bins : 2*bins]},
		During:  [2][]int32{c[2*bins : 3*bins : 3*bins], c[3*bins:]},
	}
}

// WithPast returns a table with the same past, and nothing counted in the block.
func (t *Table) WithPast() *Table {
	next := NewTable(t.Numeric, t.Bins())
	next.Pairs = t.Pairs
	for w := range t.Before {
		copy(next.Before[w], t.Before[w])
	}
	return next
}

// Bins returns the number of bins.
func (t *Table) Bins() int { return len(t.Before[0]) }

// Counted returns the number of pairs of the current block.
func (t *Table) Counted() (n int) {
	for _, k := range t.During[0] {
		n += int(k)
	}
	return n
}

// HasNumbers reports whether a number was among the past outcomes.
func (t *Table) HasNumbers() bool {
	for b := range t.Numeric {
		if t.Before[0][b]|t.Before[1][b] != 0 {
			return true
		}
	}
	return false
}

// candidate is an event and its evidence against the null: the square of the studentised gap
// (p - R q - delta)/sd, with its sign.
type candidate struct {
	set uint64
	z2  float64
}

// or returns the candidate with the stronger evidence, of equal ones the one of fewer bins.
func (c candidate) or(d candidate) candidate {
	if d.z2 > c.z2 || d.z2 == c.z2 && bits.OnesCount64(d.set) < bits.OnesCount64(c.set) {
		return d
	}
	return c
}

// studentised returns the studentised gap of an event, squared, with its sign, from its counts in the heavy and in the
// light world.
func studentised(h eprocess.Null, pairs int, heavy, light int32) float64 {
	n := float64(pairs)
	p := (float64(heavy) + .5) / (n + 1)
	q := (float64(light) + .5) / (n + 1)
	gap := p - h.Ratio*q - h.Delta
	if gap < 0 { // the variance of the null: a few counts alone are little evidence where the ratio is high
		q = max(p+q-h.Delta, 0) / (1 + h.Ratio)
		p = min(h.Ratio*q+h.Delta, .5)
	}
	return n * gap * math.Abs(gap) / (p*(1-p) + h.Ratio*h.Ratio*q*(1-q))
}

// bestEvent returns the event of a view with the strongest evidence for the world heavy.
func bestEvent(h eprocess.Null, t *Table, v View, order []uint8, heavy int) candidate {
	p, q := t.Before[heavy], t.Before[1-heavy]
	best := candidate{z2: math.Inf(-1)}
	consider := func(set uint64, kp, kq int32) {
		if set == 0 {
			return
		}
		best = best.or(candidate{set, studentised(h, t.Pairs, kp, kq)})
	}
	if v == Sorted {
		cutPrefixes(p, q, order, heavy == 1, consider)
		return best
	}
	cats, cp, cq := helpfulCategories(h, t, p, q)
	consider(cats, cp, cq)
	var allP, allQ int32
	var all uint64
	for _, b := range order {
		allP, allQ, all = allP+p[b], allQ+q[b], all|1<<b
	}
	var set uint64
	var kp, kq int32
	for _, b := range order {
		set, kp, kq = set|1<<b, kp+p[b], kq+q[b]
		consider(set, kp, kq)
		if set != all {
			consider(all&^set, allP-kp, allQ-kq)
		}
		if cats != 0 {
			consider(set|cats, kp+cp, kq+cq)
			consider(all&^set|cats, allP-kp+cp, allQ-kq+cq)
		}
	}
	return best
}

// cutPrefixes considers the prefixes of an order (its suffixes where fromEnd), between bins of different ratio
// only: bins of one ratio have no order among them.
func cutPrefixes(p, q []int32, order []uint8, fromEnd bool, consider func(set uint64, kp, kq int32)) {
	var set uint64
	var kp, kq int32
	for i := range order {
		at := i
		if fromEnd {
			at = len(order) - 1 - i
		}
		b := order[at]
		set, kp, kq = set|1<<b, kp+p[b], kq+q[b]
		if i+1 < len(order) {
			next := order[at+1-2*code.Bit(fromEnd)]
			if compareRatio(p[b], q[b], p[next], q[next]) == 0 {
				continue
			}
		}
		consider(set, kp, kq)
	}
}

// helpfulCategories returns the categories that are evidence for the world of p: those with p > R q by the smoothed
// counts.
func helpfulCategories(h eprocess.Null, t *Table, p, q []int32) (set uint64, kp, kq int32) {
	for b := t.Numeric; b < t.Bins(); b++ {
		if p[b] > 0 && float64(p[b])+.5 > h.Ratio*(float64(q[b])+.5) {
			set, kp, kq = set|1<<b, kp+p[b], kq+q[b]
		}
	}
	return set, kp, kq
}

// compareRatio orders two bins by their smoothed ratio of D0 to D1.
func compareRatio(p0, q0, p1, q1 int32) int {
	l, r := (2*int64(p0)+1)*(2*int64(q1)+1), (2*int64(p1)+1)*(2*int64(q0)+1)
	switch {
	case l > r:
		return -1
	case l < r:
		return 1
	}
	return 0
}

// OrderOf writes the bins in the order of a view to dst: numeric bins only, except for sorted, which takes all.
func OrderOf(t *Table, v View, dst []uint8) []uint8 {
	dst = dst[:0]
	switch v {
	case Ascending:
		for b := range t.Numeric {
			dst = append(dst, uint8(b))
		}
	case Folded:
		for i, j := 0, t.Numeric-1; i <= j; i, j = i+1, j-1 {
			dst = append(dst, uint8(i))
			if j > i {
				dst = append(dst, uint8(j))
			}
		}
	case Sorted:
		for b := range t.Bins() {
			dst = append(dst, uint8(b))
		}
		p, q := t.Before[0], t.Before[1]
		slices.SortStableFunc(dst, func(a, b uint8) int { return compareRatio(p[a], q[a], p[b], q[b]) })
	}
	return dst
}

// Events are the two disjoint sets of bins that a view bets on, and whether each is worth a bet.
type Events struct {
	Toward [3]uint64
	Live   [3]bool
	z2     float64 // the sum of both events' squared studentised gaps, as far as positive
}

// An event is bet on when its studentised gap (squared, signed) is above worthABet; above earlyGap while fewer than
// earlyPairs are known, when a wrong event costs more than waiting. So queries well within their claim keep their
// wealth.
const (
	worthABet  = -4
	earlyGap   = 1.5
	earlyPairs = 40
)

// Choose picks the events of a view from the past.
func Choose(h eprocess.Null, t *Table, v View, order []uint8) Events {
	d0 := bestEvent(h, t, v, order, 0)
	d1 := bestEvent(h, t, v, order, 1)
	if v == Ascending && !t.Lopsided {
		d0, d1 = preferSimple(h, t, d0, d1)
	}
	if both := d0.set & d1.set; both != 0 {
		switch {
		case d0.z2 > d1.z2:
			d1.set &^= both
		case d1.z2 > d0.z2:
			d0.set &^= both
		default:
			d0.set, d1.set = d0.set&^both, d1.set&^both
		}
	}
	least := float64(worthABet)
	if t.Pairs < earlyPairs {
		least = earlyGap
	}
	var e Events
	e.Toward[eprocess.TowardD0], e.Toward[eprocess.TowardD1] = d0.set, d1.set
	e.z2 = max(d0.z2, 0) + max(d1.z2, 0)
	e.Live[eprocess.TowardD0] = d0.set != 0 && d0.z2 > least
	e.Live[eprocess.TowardD1] = d1.set != 0 && d1.z2 > least
	if !e.Live[eprocess.TowardD0] {
		e.Toward[eprocess.TowardD0] = 0
	}
	if !e.Live[eprocess.TowardD1] {
		e.Toward[eprocess.TowardD1] = 0
	}
	return e
}

// ClassCounts sums counts by class.
func (e *Events) ClassCounts(counts []int32) (k [3]int32) {
	for _, c := range counts {
		k[eprocess.Undecided] += c
	}
	for _, side := range [2]int{eprocess.TowardD0, eprocess.TowardD1} {
		for s := e.Toward[side]; s != 0; s &= s - 1 {
			k[side] += counts[bits.TrailingZeros64(s)]
		}
	}
	k[eprocess.Undecided] -= k[eprocess.TowardD0] + k[eprocess.TowardD1]
	return k
}

// Estimate returns the smoothed probabilities of the classes (a Dirichlet(1/2) prior).
func (e *Events) Estimate(counts []int32) (p eprocess.Ternary) {
	k := e.ClassCounts(counts)
	n := float64(k[0]+k[1]+k[2]) + 1.5
	for c := range k {
		p[c] = (float64(k[c]) + .5) / n
	}
	return p
}

// Share is how often an event came in a world: K times in N trials.
type Share struct{ K, N int }

// Smoothed returns the share with half a count added.
func (s Share) Smoothed() float64 { return (float64(s.K) + .5) / (float64(s.N) + 1) }

// Shares returns how often an event came in both worlds, in the current block and in the past.
func (t *Table) Shares(e *Events, side int) (shares [2]Share) {
	for w := range shares {
		for _, counts := range [2][]int32{t.Before[w], t.During[w]} {
			c := e.ClassCounts(counts)
			shares[w].K += int(c[side])
			shares[w].N += int(c[0] + c[1] + c[2])
		}
	}
	return shares
}

// Strength is the sum of the squared studentised gaps of the two events that a score would bet on. Where every bin is
// bet on it is what stands for that: twice the logarithm of what the bet would have gained in the past.
func Strength(h eprocess.Null, t *Table, order *[]uint8) float64 {
	if t.Laws != nil {
		odds := make([]float64, 2*t.Bins())
		t.Laws.Place(h, odds)
		return 2 * max(0, GainOf(odds, t.Before))
	}
	v := Ascending
	if !t.HasNumbers() {
		v = Sorted
	}
	*order = OrderOf(t, v, *order)
	return Choose(h, t, v, *order).z2
}
