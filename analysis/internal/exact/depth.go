package exact

// depth is how much of a pair of results is read.
type depth uint8

const (
	skipped depth = iota // nothing
	shallow              // cells that are hot
	whole                // everything
)

// After wholePairs only every fourth pair is read whole, and after sparsePairs every eighth. Cells about which a question
// has gained something are hot: they are read in every pair.
const (
	wholePairs  = 128
	wholeStep   = 4
	sparsePairs = 1024
	sparseStep  = 8
	hotShare    = .25 // of the best gain
)

// deep returns how much is read of the next pair.
func (a *Answers) deep() depth {
	switch {
	case a.pairs < wholePairs, a.pairs < sparsePairs && a.pairs%wholeStep == 0, a.pairs%sparseStep == 0:
		return whole
	case a.hot || len(a.values.leads) > 0:
		return shallow
	}
	return skipped
}

// heat finds the cells that are hot.
func (a *Answers) heat() {
	if a.pairs < wholePairs-championStep {
		return
	}
	least := max(leastGain, 2*hotShare*a.least())
	for k := range a.linked.all {
		c := &a.linked.all[k]
		c.hot = a.asked[together].blockGain(c.slot) >= least
	}
	a.hot = false
	for _, c := range a.cells {
		c.hot = a.isHot(c, least)
	}
	for _, k := range a.linked.all {
		if k.hot {
			k.a.hot, k.b.hot = true, true
		}
	}
	for _, c := range a.cells {
		if !c.hot {
			continue
		}
		a.hot = true
		if p := a.cells[c.parent]; p != nil {
			p.hot = true
		}
	}
}

// isHot reports whether a question about a cell has gained enough.
func (a *Answers) isHot(c *cell, least float32) bool {
	for k, at := range c.slots {
		if q := &a.asked[k]; at >= 0 && q.blockGain(at) >= least {
			return true
		}
	}
	q := &a.asked[character]
	for _, places := range [2][]int32{c.front, c.back} {
		for _, at := range places {
			if at >= 0 && q.gains[at] >= least {
				return true
			}
		}
	}
	return false
}
