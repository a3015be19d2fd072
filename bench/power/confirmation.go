package power

import (
	"fmt"
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
)

// confirmation is how the confirmation of one violation went.
type confirmation struct {
	suspected, confirmed bool
	before, price        int // pairs before it, and in it
}

// confirm draws fresh pairs until a violation is confirmed, or the budget of the confirmation is used.
func confirm(a *analysis.Audit, draw func() (d0, d1 analysis.Outcome)) (confirmation, error) {
	c := confirmation{suspected: true, before: a.Report().Trials.D0}
	if err := a.Confirm(analysis.ConfirmationBudget(c.before), analysis.ConfirmationLevel); err != nil {
		return c, err
	}
	for !a.Decided() {
		a.Add(draw())
		c.price++
	}
	c.confirmed = a.Report().Verdict == analysis.Violation
	return c, nil
}

// confirmations are those of all audits of a cell in which a violation was suspected.
type confirmations struct {
	prices, totals       []int // sorted; those that were not confirmed last
	suspected, confirmed int
}

func confirmationsOf(each []confirmation) (all confirmations) {
	const never = 1 << 40
	for _, c := range each {
		if !c.suspected {
			continue
		}
		all.suspected++
		if c.confirmed {
			all.confirmed++
			all.prices, all.totals = append(all.prices, c.price), append(all.totals, c.before+c.price)
		} else {
			all.prices, all.totals = append(all.prices, never), append(all.totals, never)
		}
	}
	slices.Sort(all.prices)
	slices.Sort(all.totals)
	return all
}

// columns are the medians of the pairs with the confirmation and of its price alone, what the price may be (the
// information limit and 20 pairs), and the share that was confirmed.
func (c confirmations) columns(least float64) string {
	if c.confirmed <= len(c.prices)/2 {
		return fmt.Sprintf("- | - | %.0f | %d of %d", least+20, c.confirmed, c.suspected)
	}
	return fmt.Sprintf("%d | %d | %.0f | %d of %d", c.totals[len(c.totals)/2], c.prices[len(c.prices)/2], least+20, c.confirmed, c.suspected)
}
