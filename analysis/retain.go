package analysis

import (
	"github.com/dpwatch/dpwatch/analysis/internal/results"
)

// retained is a pair of results that the layout is learned from.
type retained struct {
	worlds [2]Outcome
	cut    bool // one is kept in part: enough for the layout, but not read again
}

// What is retained of results: the first and the latest pairs, each result within a bound of memory.
const (
	firstRetained  = 8
	latestRetained = 8
)

// retain keeps the first pairs and the latest before a turn, to learn the layout from. Results beyond the bound are
// kept in part.
func (a *Audit) retain(d0, d1 *Outcome) {
	if a.scores.Reader != nil && (results.WidthOf(d0) != a.scores.Reader.Width || results.WidthOf(d1) != a.scores.Reader.Width) {
		a.unmatched++
	}
	misfit := a.scores.Reader != nil && !a.scores.Reader.Keyed && (len(d0.Rows) > 1 || len(d1.Rows) > 1)
	if full := len(a.retained) == firstRetained+latestRetained; full && !misfit && !a.monotony.constant() && a.nextTurn-a.pairs >= latestRetained {
		return // later pairs will take its place before the layout is learned
	}
	var p retained
	for w, o := range [2]*Outcome{d0, d1} {
		if results.SizeOf(o) > results.MaxRetainedBytes {
			p.worlds[w], p.cut = results.SampleOf(o), true
		} else {
			p.worlds[w] = results.CopyOf(o)
		}
	}
	if misfit {
		a.misfit = true
		if len(a.retained) >= firstRetained { // the layout is learned at the end of the block, when the latest are others
			a.retained[firstRetained-1] = p
			return
		}
	}
	if len(a.retained) < firstRetained+latestRetained {
		a.retained = append(a.retained, p)
		return
	}
	a.retained[firstRetained+a.pairs%latestRetained] = p
}
