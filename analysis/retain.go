package analysis

import (
	"github.com/dpwatch/dpwatch/analysis/internal/exact"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
)

// retained is a pair of results that the layout is learned from.
type retained struct {
	worlds [2]Outcome
	cut    bool // one is kept in part: enough for the layout, but not read again
}

// What is retained of results: the first and the latest pairs, each result within a bound of memory.
const (
	firstRetained  = exact.FirstPairs
	latestRetained = 8
)

// beginExact begins to compare results whole, from the first pairs.
func (o *observations) beginExact() {
	var first [][2]*Outcome
	var whole []bool
	for i := range o.retained {
		p := &o.retained[i]
		first, whole = append(first, [2]*Outcome{&p.worlds[0], &p.worlds[1]}), append(whole, !p.cut)
	}
	o.scores.Exact.Begin(first, whole)
}

// retain keeps the first pairs and the latest before a turn, to learn the layout from. Results beyond the bound are
// kept in part.
func (o *observations) retain(d0, d1 *Outcome, nextTurn int) {
	if o.scores.Reader != nil && (results.WidthOf(d0) != o.scores.Reader.Width || results.WidthOf(d1) != o.scores.Reader.Width) {
		o.unmatched++
	}
	misfit := o.scores.Reader != nil && !o.scores.Reader.Keyed && (len(d0.Rows) > 1 || len(d1.Rows) > 1)
	if full := len(o.retained) == firstRetained+latestRetained; full && !misfit && !o.monotony.constant() && nextTurn-o.pairs >= latestRetained {
		return // later pairs will take its place before the layout is learned
	}
	var p retained
	for w, r := range [2]*Outcome{d0, d1} {
		if results.SizeOf(r) > results.MaxRetainedBytes {
			p.worlds[w], p.cut = results.SampleOf(r), true
		} else {
			p.worlds[w] = results.CopyOf(r)
		}
	}
	if misfit {
		o.misfit = true
		if len(o.retained) >= firstRetained { // the layout is learned at the end of the block, when the latest are others
			o.retained[firstRetained-1] = p
			return
		}
	}
	if len(o.retained) < firstRetained+latestRetained {
		o.retained = append(o.retained, p)
		return
	}
	o.retained[firstRetained+o.pairs%latestRetained] = p
}
