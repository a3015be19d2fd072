package analysis

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Figures holds the series of an audit that can be drawn.
type Figures struct {
	Claim      Claim
	NoClaim    bool
	Threshold  float64        // ln(1/alpha)
	Path       []PathPoint    // at the ends of blocks, so that there are as many as the logarithm of the pairs allows
	Histogram  *Histogram     // nil before any number was seen
	Ranks      *Ranks         // of the same numbers; nil if they are few
	Categories *Categories    // of the same column; nil where there are numbers alone
	Profile    []ProfilePoint // nil of [Audit.QuickFigures]
}

// PathPoint is the state after some pairs: the log-wealth against the claim (NaN without one) and the bound.
type PathPoint struct {
	Pairs        int
	Wealth, Line float64 // Line is the lower bound
}

// Histogram is the counts of kept values of one column of one partition, in bins of equal width. Where all values are
// whole numbers, each bin is centred on as many of them, and its edges are halves.
type Histogram struct {
	Label  withheld.Text
	Edges  withheld.Value[[]float64] // one more than counts
	D0, D1 []int
	// Event holds the intervals of values with the strongest evidence, clipped to the range of the bins; empty if the
	// event is another one. Direction is the world in which they are more likely.
	Event     withheld.Value[[][2]float64]
	Direction string
}

// Figures returns what can be drawn now. It takes time: every point of the profile is a process over all trials.
func (a *Audit) Figures() Figures {
	f := a.QuickFigures()
	if a.observed.pairs == 0 {
		return f
	}
	steps, deltas := fineFigure, profileDeltas
	if a.evidence.book.Places > fewPlaces {
		steps, deltas = coarseFigure, coarseDeltas
	}
	last := max(3, 2*f.Claim.Epsilon)
	for i := range steps + 1 {
		f.Profile = append(f.Profile, a.evidence.profilePoint(last*float64(i)/float64(steps), deltas, a.opts.alpha()))
	}
	return f
}

// How many steps a drawn profile has, and one of an audit with many columns and groups, in which a process takes long.
const fineFigure, coarseFigure = 12, 4

// QuickFigures returns what can be drawn now without a process over all trials: all but the profile.
func (a *Audit) QuickFigures() Figures {
	a.look()
	a.evidence.climb()
	f := Figures{Claim: a.here(), NoClaim: a.opts.NoClaim, Threshold: a.evidence.threshold - a.evidence.parts(), Path: slices.Clone(a.evidence.path)}
	if a.observed.pairs > 0 {
		f.Path = append(f.Path, a.evidence.pathPoint(a.observed.pairs))
		f.Path[len(a.evidence.path)].Line = a.evidence.atFront()
	}
	if s, m := strongestSlot(&a.observed, &a.evidence); s != nil {
		f.Histogram = a.observed.histogram(s, m)
		f.Ranks = a.observed.ranks(s, m)
		f.Categories = a.observed.categories(s, m)
	}
	return f
}

// marked is an event of the values of a slot: a set of bins, 0 = none, and the world in which it is likelier.
type marked struct {
	*bins.Binner
	set       uint64
	direction string
}

// has reports whether a code is part of the event.
func (m marked) has(c code.Code) bool { return m.set>>m.Bin(c)&1 == 1 }

// histogram counts the numbers of a slot.
func (o *observations) histogram(s *score.Series, m marked) *Histogram {
	var all []float64
	for _, codes := range s.Past {
		for _, c := range codes {
			if code.IsNumber(c) {
				all = append(all, c)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	lo, hi := all[len(all)/200], all[len(all)-1-len(all)/200] // the outermost 1 % would hide the rest
	if !(hi-lo > 0) || math.IsInf(hi-lo, 0) {
		if lo, hi = lo-.5, lo+.5; !(hi > lo) || math.IsInf(hi-lo, 0) {
			return nil
		}
	}
	bins, whole := 40, !slices.ContainsFunc(all, func(x float64) bool { return x != math.Trunc(x) || math.Abs(x) >= 1<<52 })
	if whole { // each bin holds as many whole numbers, in its middle
		each := math.Ceil((math.Floor(hi) - math.Ceil(lo) + 1) / float64(bins))
		lo = math.Ceil(lo) - .5
		bins = int(math.Ceil((math.Floor(hi) + .5 - lo) / each))
		hi = lo + each*float64(bins)
	}
	h := &Histogram{D0: make([]int, bins), D1: make([]int, bins), Direction: m.direction}
	bounds := make([]float64, bins+1)
	for i := range bounds {
		bounds[i] = min(lo+(hi-lo)/float64(bins)*float64(i), hi) // a multiple of the range may exceed the greatest float
	}
	h.Edges = withheld.Of(bounds)
	for w, counts := range [][]int{h.D0, h.D1} {
		for _, c := range s.Past[w] {
			if code.IsNumber(c) && c >= lo && c <= hi {
				counts[bucketOf(c, lo, hi, bins)]++
			}
		}
	}
	h.Label = o.scores.SlotLabel(s.Slot)
	edges := append(append([]float64{lo}, m.Edges...), hi)
	var event [][2]float64
	if whole { // an edge belongs to the numbers above it
		for i := range m.Edges {
			edges[i+1] = math.Ceil(edges[i+1]) - .5
		}
	}
	for i := range m.Numeric() {
		if from, to := max(edges[i], lo), min(edges[i+1], hi); m.set>>i&1 == 1 && from < to {
			event = append(event, [2]float64{from, to})
		}
	}
	h.Event = withheld.Of(event)
	return h
}

// strongestSlot returns the slot to draw: the one with the most wealth against the claim. If no score of anything else
// has more, an event of its values is what decides; otherwise there is none. Before anything is bet on a slot it is the
// first one with numbers, or the first; nil without slots.
func strongestSlot(o *observations, v *evidence) (s *score.Series, m marked) {
	top := math.Inf(-1)
	for st := range v.lead.Standings(&v.book, v.epoch) {
		if own := o.scores.Named(st.Entry.Score); own != nil && own.IsSlot() && st.Wealth > top && atStake(st.Events) {
			top, s = st.Wealth, own
		}
	}
	for _, own := range o.scores.Slots {
		if s == nil && own.Binner.Numeric() > 1 {
			s = own
		}
	}
	if s == nil && len(o.scores.Slots) > 0 {
		s = o.scores.Slots[0]
	}
	if s == nil {
		return nil, m
	}
	if best := strongest(o, v); best.series != nil && (best.series == s || best.series.IsLaw()) {
		return s, marked{&best.series.Binner, best.set, best.event.Direction}
	}
	return s, marked{Binner: &s.Binner}
}
