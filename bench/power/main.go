// Package power measures the audits of package analysis: how many pairs of trials they take to convict mechanisms
// that leak more than they claim, how often they alarm at mechanisms that do not, and how high their lower bounds are
// beside published ones. It prints markdown tables. The seeds are fixed: the same arguments give the same tables.
package power

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"sync"

	"github.com/dpwatch/dpwatch/analysis"
)

type options struct {
	runs, budget, alarmRuns, alarmPairs, dependentPairs, boundPairs, boundRuns, neighbours, workers int
	seed                                                                                            uint64
	cells                                                                                           *regexp.Regexp
}

// Run measures with the arguments of the command line, and prints tables in markdown.
func Run(_ context.Context, args []string) error {
	var w io.Writer = os.Stdout
	flags := flag.NewFlagSet("power", flag.ContinueOnError)
	var o options
	flags.IntVar(&o.runs, "runs", 200, "audits per cell of the table of power; 0 for none")
	flags.IntVar(&o.budget, "budget", 0, "pairs of trials, at most, of each audit of the table of power; 0 for the budget of its cell")
	flags.IntVar(&o.alarmRuns, "alarm-runs", 200, "audits per cell of the table of false alarms; 0 for none")
	flags.IntVar(&o.alarmPairs, "alarm-pairs", 20_000, "pairs of trials per audit of the table of false alarms")
	flags.IntVar(&o.dependentPairs, "dependent-pairs", 5000, "pairs of trials per audit of the table of dependent trials; -alarm-runs audits a cell")
	flags.IntVar(&o.boundPairs, "bounds", 0, "pairs of trials per audit of the table of lower bounds; 0 for none")
	flags.IntVar(&o.boundRuns, "bound-runs", 1, "audits per mechanism of the table of lower bounds, whose median it shows")
	flags.IntVar(&o.neighbours, "neighbours", 0, "neighbours of the audits of another table, which replaces the others: executions of audits with several neighbours, -runs audits a cell")
	flags.IntVar(&o.workers, "workers", runtime.NumCPU(), "audits at a time")
	flags.Float64Var(&alpha, "alpha", alpha, "the audits' rate of false alarms; that of the j-th audit of a fleet is 6/(pi j)^2 of the fleet's")
	flags.Uint64Var(&o.seed, "seed", 1000, "first seed")
	cells := flags.String("cells", ".", "regular expression: only the cells with such a name")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if o.cells, err = regexp.Compile(*cells); err != nil {
		return fmt.Errorf("-cells: %w", err)
	}
	if o.workers < 1 || o.runs < 0 || o.budget < 0 || o.alarmRuns < 0 || o.alarmPairs < 1 || o.dependentPairs < 1 || o.boundPairs < 0 || o.boundRuns < 1 {
		return fmt.Errorf("-workers, -alarm-pairs, -dependent-pairs and -bound-runs must be at least 1, -runs, -budget, -alarm-runs and -bounds at least 0")
	}
	if !(alpha > 0 && alpha < .5) {
		return fmt.Errorf("-alpha must be more than 0 and less than 0.5")
	}
	if o.neighbours > 1 && o.runs > 0 {
		return neighbours(w, o)
	}
	if err := power(w, o); err != nil {
		return err
	}
	if err := alarms(w, o); err != nil {
		return err
	}
	if err := dependences(w, o); err != nil {
		return err
	}
	return bounds(w, o)
}

// alpha is the audits' rate of false alarms.
var alpha = .05

func power(w io.Writer, o options) error {
	if o.runs == 0 {
		return nil
	}
	fmt.Fprintf(w, "Pairs of trials to a violation, %d audits a cell, alpha %g, looked at after every pair.\n\n", o.runs, alpha)
	fmt.Fprintln(w, "| mechanism | median | 90 % | found | within | goal | g (nats per pair) | ln(1/alpha)/g (pairs) | times that | nats over | with confirmation | its price | at most | confirmed |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, f := range wrong() {
		if !o.cells.MatchString(f.name) {
			continue
		}
		if o.budget > 0 {
			f.budget = o.budget
		}
		at, confirmed, err := detections(f, o, o.runs, f.budget)
		if err != nil {
			return err
		}
		median, q90 := at[len(at)/2], at[len(at)*9/10]
		found, _ := slices.BinarySearch(at, f.budget+1)
		p, q := f.laws()
		g := analysis.Growth(p, q, f.claim)
		least := math.Log(1/alpha) / g
		goal := max(4*least, 3*least+20, float64(f.derived))
		fmt.Fprintf(w, "| %s | %s | %s | %.1f %% | %d | %.0f | %.4g | %.4g | %.2f | %.1f | %s |\n", f.name, pairs(median, f.budget), pairs(q90, f.budget),
			100*float64(found)/float64(len(at)), f.budget, goal, g, least, float64(median)/least, float64(median)*g-math.Log(1/alpha), confirmed.columns(least))
	}
	fmt.Fprintln(w)
	return nil
}

func pairs(n, budget int) string {
	if n > budget {
		return fmt.Sprintf("> %d", budget)
	}
	return fmt.Sprint(n)
}

func alarms(w io.Writer, o options) error {
	if o.alarmRuns == 0 {
		return nil
	}
	fmt.Fprintf(w, "False alarms at the tight claim, %d audits of %d pairs a cell, looked at after every pair.\n\n", o.alarmRuns, o.alarmPairs)
	fmt.Fprintln(w, "| mechanism | alarms | rate | 99 % interval | confirmed | 99 % interval |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	for _, f := range right() {
		if !o.cells.MatchString(f.name) {
			continue
		}
		at, after, err := detections(f, o, o.alarmRuns, o.alarmPairs)
		if err != nil {
			return err
		}
		k, _ := slices.BinarySearch(at, o.alarmPairs+1)
		lo, hi := analysis.ClopperPearson(k, len(at), .01)
		least, most := analysis.ClopperPearson(after.confirmed, len(at), .01)
		fmt.Fprintf(w, "| %s | %d | %.1f %% | %.1f to %.1f %% | %d | %.1f to %.2f %% |\n",
			f.name, k, 100*float64(k)/float64(len(at)), 100*lo, 100*hi, after.confirmed, 100*least, 100*most)
	}
	return nil
}

// detections returns the pairs to detection of all runs, sorted, budget+1 for none, and how their confirmations went.
func detections(f family, o options, runs, budget int) (at []int, all confirmations, err error) {
	at, each := make([]int, runs), make([]confirmation, runs)
	err = parallel(o, runs, func(i int) (err error) {
		at[i], each[i], err = detect(f, budget, o.seed+uint64(i))
		return err
	})
	if err != nil {
		return nil, all, fmt.Errorf("%s: %w", f.name, err)
	}
	slices.Sort(at)
	return at, confirmationsOf(each), nil
}

// parallel runs audits, so many at a time, and returns their errors.
func parallel(o options, runs int, audit func(i int) error) error {
	errs := make([]error, runs)
	next := make(chan int)
	var wg sync.WaitGroup
	for range o.workers {
		wg.Go(func() {
			for i := range next {
				errs[i] = audit(i)
			}
		})
	}
	for i := range runs {
		next <- i
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

// detect returns the pairs to detection, and how the confirmation went.
func detect(f family, budget int, seed uint64) (int, confirmation, error) {
	a, err := analysis.New(f.claim, analysis.Options{MaxTrials: budget, Confidence: 1 - alpha, Query: analysis.Query{Constants: f.numbers}})
	if err != nil {
		return 0, confirmation{}, err
	}
	r := rand.New(rand.NewPCG(seed, 20240607))
	for !a.Decided() {
		a.Add(f.draw(r))
	}
	n := a.DetectedAt()
	if n == 0 {
		return budget + 1, confirmation{}, nil
	}
	c, err := confirm(a, func() (d0, d1 analysis.Outcome) { return f.draw(r) })
	return n, c, err
}
