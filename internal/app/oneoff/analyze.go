package oneoff

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/recorded"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// FileOptions configures how files of results are read and in which order they are analyzed.
type FileOptions struct {
	recorded.Options
	InOrder bool // the order of the files instead of random ones
}

// Results without an order are analyzed in so many random orders at most, with the seeds from firstOrder on. They are
// the same for all files, so that nobody can look for a seed that finds a violation.
const (
	orders     = 5
	firstOrder = 1
)

// Analyze analyzes two files of results, pair by pair, in random order or in the order of the files. It writes plots
// into the directory plots, unless that is empty or the analysis was refused.
func Analyze(d0, d1 string, o FileOptions, claim analysis.Claim, opt analysis.Options, plots string) (read.Conclusion, error) {
	files, err := recorded.Open(d0, d1, o.Options)
	if err != nil {
		return read.Conclusion{}, err
	}
	defer files.Close()
	in := files.Inputs()
	found := read.Conclusion{Input: &read.InputReport{D0: in[0], D1: in[1]}}
	pairs := files.Pairs()
	opt.MaxTrials, opt.Salt = max(pairs, 1), rand.Text()
	e, err := evidence.NewRecorded(claim, opt, 1, o.InOrder)
	var infeasible *analysis.InfeasibleError
	used, reason := pairs, ""
	var misfit error
	switch isInfeasible := errors.As(err, &infeasible); {
	case err != nil && !isInfeasible:
		return read.Conclusion{}, err
	case pairs == 0:
		reason = fmt.Sprintf("a file is empty: %d results on D0, %d on D1", in[0].Trials, in[1].Trials)
	case unequal(in):
		used, misfit = 0, fmt.Errorf("%s has %d trials and %s has %d: give both files the same number of trials; truncate the longer one if only its first trials count", d0, in[0].Trials, d1, in[1].Trials)
	case isInfeasible:
		used, reason = 0, err.Error()
	}
	var order analysis.Order
	next := files.Next
	var shuffled *recorded.Shuffled
	if used > 0 && !o.InOrder {
		if shuffled, err = recorded.Shuffle(files, firstOrder, order.Add); err != nil {
			return read.Conclusion{}, err
		}
		defer shuffled.Close()
		seed := uint64(firstOrder)
		next, found.Input.Seed = shuffled.Next, &seed
	}
	add := func(e *evidence.Evidence) error {
		for range used {
			x, y, err := next()
			if err != nil {
				return err
			}
			if o.InOrder {
				order.Add(x, y)
			}
			e.Add([]outcome.Outcome{x, y})
		}
		return nil
	}
	if err := add(e); err != nil {
		return read.Conclusion{}, err
	}
	var report analysis.Report
	if used > 0 {
		report = e.Report(0)
	}
	if shuffled != nil {
		all, each := analysis.NewOrders(orders), []*evidence.Evidence{e}
		for n := uint64(1); all.Add(e.Audit(0), report); n++ {
			if e, err = evidence.NewRecorded(claim, opt, 1, false); err != nil {
				return read.Conclusion{}, err
			}
			shuffled.Reorder(firstOrder + n)
			if err := add(e); err != nil {
				return read.Conclusion{}, err
			}
			each, report = append(each, e), e.Report(0)
		}
		e, report, found.Input.Orders = each[all.Strongest()], all.Report(), len(each)
	}
	if err := cmp.Or(files.Rest(), misfit); err != nil { // an invalid result is reported first
		return read.Conclusion{}, err
	}
	if reason != "" {
		found.Report = refused(claim, opt.Confidence, reason)
	} else {
		found.Report = order.Temper(report, o.InOrder)
		if plots != "" {
			_, err := plot.Write(plots, e.Audit(0).Figures(), found.Report)
			found.Warnings = unwritten(found.Warnings, err)
		}
		if found.Input.Orders <= 1 { // the profile of an order that was chosen holds nothing
			e.Audit(0).AddProfile(&found.Report)
		}
		found.Claimed.Source = "flag"
	}
	for _, w := range slices.Concat(o.orderWarnings(&order), unusedTrials(in), files.Warnings()) {
		found.Warnings = append(found.Warnings, withheld.Public(w))
	}
	return found, nil
}

// unwritten adds a warning that plots could not be written, on which no verdict depends.
func unwritten(warnings []withheld.Text, err error) []withheld.Text {
	if err != nil {
		warnings = append(warnings, withheld.Public("the plots were not written: "+err.Error()))
	}
	return warnings
}

// orderWarnings returns warnings about the order of the files.
func (o FileOptions) orderWarnings(order *analysis.Order) (all []string) {
	for _, finding := range order.Findings() {
		if o.InOrder {
			finding = "in the order of the files " + finding
		} else {
			finding = fmt.Sprintf("in the order of the files %s: the results are sorted, or the trials are not independent and identically distributed; they were analyzed in random order. "+
				"If the files are in the order of execution, repeat with --in-order", finding)
		}
		all = append(all, finding)
	}
	return all
}

// unequal reports whether one file has more than twice the trials of the other, so that they are unlikely to be from
// one experiment.
func unequal(in [2]recorded.Input) bool {
	return max(in[0].Trials, in[1].Trials) > 2*min(in[0].Trials, in[1].Trials)
}

func unusedTrials(in [2]recorded.Input) []string {
	for i := range in {
		if n := in[i].Unused; n > 0 {
			return []string{fmt.Sprintf("%d results on D0 and %d on D1: the last %d of D%d were not used", in[0].Trials, in[1].Trials, n, i)}
		}
	}
	return nil
}

func refused(claim analysis.Claim, confidence float64, reason string) analysis.Report {
	r := analysis.Refused(claim, confidence, reason)
	r.Claimed.Source = "flag"
	return r
}
