package read

import (
	"cmp"
	"math"
	"strings"
)

// The orders of a list, by the names that pages and the ledger use. The largest is first unless Filter.Up is set.
// Audits that are equal, or of which the value is not known, are in the order of their violations' bounds, then the one
// that ran last first.
const (
	BySeverity   = "" // open violations, accepted ones, the others
	ByBound      = "bound"
	ByClaim      = "claim"
	ByTrials     = "trials"
	ByExecutions = "executions"
	ByLast       = "last"  // execution
	ByFirst      = "first" // execution
	BySummary    = "summary"
	Recent       = "recent"  // violations, then by the last execution: the only order that Filter.Cursor can go on in, and never reversed
	ByExcess     = "excess"  // how far a violation exceeds the claim; accepted ones last
	Pending      = "pending" // audits that have trials by their number, then those that wait
)

// order is a way to sort audits.
type order struct {
	compare func(x, y *Audit) int
	unknown func(a *Audit) bool // the audit has no value; nil = every audit has one
}

// number is the order of a number, NaN if it is not known.
func number(value func(a *Audit) float64) order {
	return order{
		compare: func(x, y *Audit) int { return cmp.Compare(value(x), value(y)) },
		unknown: func(a *Audit) bool { return math.IsNaN(value(a)) },
	}
}

var orders = map[string]order{
	BySeverity:   {compare: func(x, y *Audit) int { return cmp.Compare(x.standing(), y.standing()) }},
	ByBound:      number((*Audit).lower),
	ByClaim:      number(func(a *Audit) float64 { return float64(a.Claim()) }),
	ByTrials:     {compare: func(x, y *Audit) int { return cmp.Compare(x.Trials(), y.Trials()) }},
	ByExecutions: {compare: func(x, y *Audit) int { return cmp.Compare(x.Seen, y.Seen) }},
	ByLast:       {compare: func(x, y *Audit) int { return x.LastSeen.Compare(y.LastSeen) }},
	ByFirst:      {compare: func(x, y *Audit) int { return x.FirstSeen.Compare(y.FirstSeen) }},
	BySummary:    {compare: func(x, y *Audit) int { return strings.Compare(x.Summary, y.Summary) }},
	ByExcess:     {compare: func(x, y *Audit) int { return cmp.Compare(x.excess(), y.excess()) }},
	Pending: {
		compare: func(x, y *Audit) int { return cmp.Compare(x.Trials(), y.Trials()) },
		unknown: func(a *Audit) bool { return a.WaitingFor != nil },
	},
}

// order returns the comparison of a filter; false if there is no such order.
func (f *Filter) order() (func(x, y *Audit) int, bool) {
	if f.Sort == Recent {
		return Compare, true
	}
	o, known := orders[f.Sort]
	return func(x, y *Audit) int {
		if o.unknown != nil {
			if ux, uy := o.unknown(x), o.unknown(y); ux != uy {
				if ux {
					return 1
				}
				return -1
			}
		}
		by := o.compare(x, y)
		if !f.Up {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(y.severest(), x.severest()), y.LastSeen.Compare(x.LastSeen), strings.Compare(x.Key, y.Key))
	}, known
}

// Compare is the order Recent: violations first, then the latest query first.
func Compare(x, y *Audit) int { return x.position().compare(y.position()) }

// standing orders audits by their violation.
func (a *Audit) standing() int {
	return map[string]int{StatusOpen: 2, StatusAccepted: 1}[string(a.Status())]
}

// lower returns the lower bound of the present evidence; NaN without one.
func (a *Audit) lower() float64 {
	if a.Report == nil {
		return math.NaN()
	}
	return float64(a.Report.EpsilonLower)
}

// severest returns the bound of a violation, which orders audits that are equal otherwise; -Inf without one.
func (a *Audit) severest() float64 {
	if lower := a.lower(); a.Violation() && !math.IsNaN(lower) {
		return lower
	}
	return math.Inf(-1)
}

// Parts of excess: a violation without any epsilon is above all others, and an accepted one below.
const (
	withoutEpsilon = 1e6
	ofAccepted     = -1e9
)

// excess returns how far the bound of a violation exceeds the claim.
func (a *Audit) excess() float64 {
	x := float64(a.ViolationBound()) - float64(a.Claim())
	if a.Deterministic() || math.IsNaN(x) {
		x = withoutEpsilon
	}
	if a.Accepted != nil {
		x += ofAccepted
	}
	return x
}
