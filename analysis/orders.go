package analysis

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// Orders are audits of the same pairs, whose order has no meaning, in several random orders that were fixed beforehand.
// In each order the wealth at the end is an e-value, and so is their average: it decides. What a single order has shown
// before its end does not count, since another one would show another: neither a maximum of the wealth nor the pair of a
// detection.
type Orders struct {
	planned int
	audits  []*Audit
	reports []Report
}

// NewOrders begins with no order of so many.
func NewOrders(planned int) *Orders { return &Orders{planned: planned} }

// Add adds the audit of an order at its end, and its report. It reports whether the verdict needs further orders: not if
// the others cannot lower the average below the threshold any more, nor if at least two have gained nothing on average.
// Orders that are left out count as ones that lost everything.
func (o *Orders) Add(a *Audit, r Report) (more bool) {
	o.audits, o.reports = append(o.audits, a), append(o.reports, r)
	n, planned := len(o.audits), float64(o.planned)
	wealth := o.average((*Audit).Wealth)
	return n < o.planned && !a.opts.NoClaim && wealth < r.Threshold() && (n < fewestOrders || wealth >= math.Log(float64(n)/planned))
}

// fewestOrders are analyzed of honest files. Of 360 simulated files with and without a leak near the limit of what is
// found, further orders would have changed the verdict of none.
const fewestOrders = 2

// average returns the log of the average of a wealth over the planned orders, of which those that are left out have
// none.
func (o *Orders) average(wealth func(*Audit) float64) float64 {
	all := math.Inf(-1)
	for _, a := range o.audits {
		all = eprocess.LogAdd(all, wealth(a))
	}
	return all - math.Log(float64(o.planned))
}

// Strongest returns the number of the order that has the most wealth at its end.
func (o *Orders) Strongest() int {
	best := 0
	for i, a := range o.audits {
		if a.Wealth() > o.audits[best].Wealth() {
			best = i
		}
	}
	return best
}

// Report returns the report of the strongest order, with the verdict of the average.
func (o *Orders) Report() Report {
	best := o.Strongest()
	a, r := o.audits[best], o.reports[best]
	if a.opts.NoClaim {
		return r
	}
	r.WealthLog = Float(o.average((*Audit).Wealth))
	wasFound := r.DetectedAt != nil
	claim := float64(r.Claimed.Epsilon)
	switch found := float64(r.WealthLog) >= r.Threshold(); {
	case r.Verdict == Violation && !wasFound: // answers that never vary and differ
		return r
	case r.Verdict != Violation && r.Verdict != NoEvidence:
	case found && wasFound:
		r.Reason = fmt.Sprintf("%s with confidence %v, after all %d pairs of trials in random order", a.exceeded(), a.opts.Confidence, r.Trials.D0)
	default:
		r.Verdict, r.Finding = NoEvidence, nil
		r.Verdict, r.Reason = a.noEvidence(&r)
	}
	lower := float64(r.EpsilonLower)
	switch {
	case len(a.evidence.sides) > 0 || r.Claimed.Curve != "": // that of one order, which was fixed beforehand
		lower, r.CurveLower = float64(o.reports[0].EpsilonLower), o.reports[0].CurveLower
	case lower > 0:
		lower = o.lower()
	}
	if r.Verdict != Violation {
		lower, r.CurveLower = min(lower, claim), ""
	} else {
		lower = max(lower, a.evidence.grid[a.evidence.claimAt])
	}
	r.EpsilonLower, r.Attacker = Float(lower), r.Attacker.at(lower)
	if r.Finding != nil {
		event := strongest(&a.observed, &a.evidence)
		r.Finding = a.explained.finding(&r, &a.observed, &a.evidence, &event, a.here(), a.opts.Query)
	}
	r.DetectedAt = nil // last: without it the finding is about answers that never vary
	return r
}

// gridBlock is the number of points of the grid in a block. The claim's point is the last of its block.
const gridBlock = 8

// lower returns the bound of the average: the greatest point that it rejects together with all before it. Each wealth
// takes a pass over all bets of each order, so that the points are taken in blocks that are fixed beforehand: at each
// point counts the average of its wealth and that of the block's last point, which is an e-value against every epsilon
// up to that point. A block whose last point alone has twice the wealth that rejects needs no other one.
func (o *Orders) lower() (lower float64) {
	v := &o.audits[0].evidence
	ends := func(i int) bool { return i == 0 || (i-v.claimAt)%gridBlock == 0 || i == len(v.grid)-1 }
	for first := 0; first < len(v.grid); {
		last := first
		for !ends(last) {
			last++
		}
		end := o.wealthAt(last)
		for i := first; i <= last && end < v.threshold+math.Ln2; i++ {
			wealth := end
			if i < last {
				wealth = eprocess.LogAdd(end, o.wealthAt(i)) - math.Ln2
			}
			if wealth < v.threshold {
				return lower
			}
			lower = v.grid[i]
		}
		lower, first = v.grid[last], last+1
	}
	return lower
}

// wealthAt returns the log of the average against a point of the grid.
func (o *Orders) wealthAt(i int) float64 {
	v := &o.audits[0].evidence
	if i == v.claimAt {
		return o.average((*Audit).Wealth)
	}
	return o.average(func(a *Audit) float64 { return a.endWealth(v.grid[i], i < v.claimAt) })
}

// endWealth returns the log of the wealth against an epsilon after all pairs.
func (a *Audit) endWealth(epsilon float64, below bool) float64 {
	p := &book.Process{Null: eprocess.NewNull(epsilon, a.evidence.delta), Below: below}
	a.evidence.replay(p, &a.evidence.book)
	return p.Total()
}
