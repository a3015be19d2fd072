package bins

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// Binner maps codes to bins: numeric ones by edges (a bin is the number of edges <= x), then one bin per
// category that was common in the past, then one for all other categories.
type Binner struct {
	Edges      []float64
	Categories []code.Label
	Crowded    bool // there were more categories than bins
}

// Numeric returns the number of numeric bins.
func (b *Binner) Numeric() int { return len(b.Edges) + 1 }

// Bins returns the number of bins.
func (b *Binner) Bins() int { return len(b.Edges) + len(b.Categories) + 2 }

// Bin returns the bin of a code.
func (b *Binner) Bin(c code.Code) int {
	if !code.IsNumber(c) {
		l := code.LabelOf(c)
		for i, k := range b.Categories {
			if k == l {
				return len(b.Edges) + 1 + i
			}
		}
		return len(b.Edges) + 1 + len(b.Categories)
	}
	n := len(b.Edges)
	if n == 0 {
		return 0
	}
	lo := 0
	for n > 1 { // without branches, which noise would make a processor mispredict
		half := n / 2
		lo += half & -code.Bit(b.Edges[lo+half-1] <= c)
		n -= half
	}
	return lo + code.Bit(b.Edges[lo] <= c)
}

// State describes the binner.
func (b *Binner) State(c *state.Codec) {
	c.Floats(&b.Edges)
	state.List(c, &b.Categories, func(l *code.Label) { l.State(c) })
	c.Bool(&b.Crowded)
	c.Check(b.Bins() <= MaxBins)
}

// MaxBins is the most bins that a score has: an event is a set of bins, kept as one word.
const MaxBins = 64

// Limits of a binner: the numeric bins, the common categories, and one bin for all others.
const (
	maxNumeric  = 40
	MaxCommon   = MaxBins - maxNumeric - 1
	LeastCommon = 64   // pairs from which a text or an error that was seen once has no bin: it stands for those not seen yet
	MaxEdgeData = 2048 // values that edges are learned from
)

// Scratch is memory that learning uses again and again.
type Scratch struct {
	Values []float64
	labels []labelCount
	places map[code.Label]int // in labels, where these are many
	sorter
}

// Learn sets the bins from past codes of both worlds (of equal length): quantiles of the pooled values,
// with values that repeat often in separate bins, and categories.
func (b *Binner) Learn(past [2][]code.Code, most int, s *Scratch) {
	s.Values = s.Values[:0]
	b.LearnCategories(past, s)
	stride := max(1, (2*len(past[0])+MaxEdgeData-1)/MaxEdgeData)
	for i := 0; i < len(past[0]); i += stride {
		for w := range past {
			if c := past[w][i]; code.IsNumber(c) {
				s.Values = append(s.Values, c)
			}
		}
	}
	s.Sort(s.Values)
	b.Edges = appendEdges(b.Edges[:0], s.Values, min(most, maxNumeric))
}

// LearnCategories chooses the categories that get bins from past codes of both worlds.
func (b *Binner) LearnCategories(past [2][]code.Code, s *Scratch) {
	s.ResetLabels()
	for i, c0 := range past[0] {
		if !code.IsNumber(c0) {
			s.CountLabel(code.LabelOf(c0), 0)
		}
		if c1 := past[1][i]; !code.IsNumber(c1) {
			s.CountLabel(code.LabelOf(c1), 1)
		}
	}
	b.Categories, b.Crowded = s.chooseLabels(b.Categories[:0], MaxCommon, len(past[0])), len(s.labels) > MaxCommon
}

// appendEdges cuts sorted values into about the given number of bins at quantiles, between distinct values, and
// never into more than maxNumeric. A value that would fill a bin alone gets exact edges.
func appendEdges(edges, values []float64, bins int) []float64 {
	n := len(values)
	if n < 2 {
		return edges
	}
	for bins = min(bins, max(2, n/2)); bins > 1; bins = bins * 2 / 3 {
		edges = quantileEdges(edges[:0], values, bins)
		if len(edges) < maxNumeric {
			break
		}
	}
	return edges
}

// leastTail is the fewest values in a tail that gets an edge.
const leastTail = 8

// quantileEdges places the edges at i/bins, i = 1 .. bins-1, and, where there are enough values, at a half, a quarter
// and an eighth of the first and of the last bin: tails show noise of another scale or of lighter tails; one on each
// side of an atom. It treats both ends alike, so that a score and its negative have the same bins.
func quantileEdges(edges, values []float64, bins int) []float64 {
	n := len(values)
	last := math.Inf(-1)
	add := func(e float64) {
		if e > last {
			edges = append(edges, e)
			last = e
		}
	}
	exact := func(lo, hi int) {
		if lo > 0 {
			add(values[lo])
		}
		if hi < n {
			add(math.Nextafter(values[lo], math.Inf(1)))
		}
	}
	const fine = 8
	bins *= fine
	for i := 1; i < bins; i++ {
		if outer := min(i, bins-i); i%fine != 0 && (outer != 1 && outer != 2 && outer != 4 || min(outer, 2)*n < leastTail*bins) {
			continue
		}
		at := i * n / bins
		if 2*i > bins {
			at = n - (bins-i)*n/bins
		}
		at = min(max(at, 1), n-1)
		lo, hi := EqualRun(values, at)
		before, _ := EqualRun(values, at-1)
		isAtom := func(lo, hi int) bool { return hi-lo > 1 && (hi-lo)*bins >= fine*n }
		switch left, right := isAtom(before, lo), isAtom(lo, hi); {
		case lo < at && right:
			exact(lo, hi)
		case lo < at: // within a run: cut at its outer end, in the middle at both, at the inner end where it is outermost
			if lo > 0 && (2*i <= bins || hi == n) {
				add(Between(values[lo-1], values[lo]))
			}
			if hi < n && (2*i >= bins || lo == 0) {
				add(Between(values[lo], values[hi]))
			}
		case right && !left:
			exact(lo, hi)
		case left && !right:
			exact(before, lo)
		default:
			add(Between(values[lo-1], values[lo]))
		}
	}
	return edges
}

// EqualRun returns the bounds of the run of values equal to values[at].
func EqualRun(values []float64, at int) (lo, hi int) {
	for lo = at; lo > 0 && values[lo-1] == values[at]; lo-- {
	}
	for hi = at + 1; hi < len(values) && values[hi] == values[at]; hi++ {
	}
	return lo, hi
}

// Between returns an edge e with a < e <= b.
func Between(a, b float64) float64 {
	if e := a/2 + b/2; e > a && e <= b {
		return e
	}
	return b
}

// IsPresence reports whether a set holds every outcome but absent.
func (b *Binner) IsPresence(set uint64) bool {
	for i, id := range b.Categories {
		if id == code.Absent {
			others := uint64(1)<<(b.Bins()-1) - 1 // the bin of unseen categories does not matter
			return set&others == others&^(1<<(b.Numeric()+i))
		}
	}
	return false
}

// CountNumbers counts sorted numbers by bin.
func (b *Binner) CountNumbers(values []float64, counts []int32) {
	from := 0
	for i, e := range b.Edges {
		to, _ := slices.BinarySearch(values, e)
		counts[i] += int32(to - from)
		from = to
	}
	counts[len(b.Edges)] += int32(len(values) - from)
}
