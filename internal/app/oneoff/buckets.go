package oneoff

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/buckets"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/recorded"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Buckets is the report of the bucket estimator on recorded results.
type Buckets struct {
	buckets.Report
	Input    read.InputReport `json:"input"`
	Warnings []withheld.Text  `json:"warnings"`
}

// BucketOptions configures AnalyzeBuckets.
type BucketOptions struct {
	Rules      []string // in the syntax of buckets.Parse
	Confidence float64
	MinCount   int    // of the point estimate
	Plots      string // a directory, or "" for none
}

// AnalyzeBuckets runs the bucket estimator with the user's rules on two files of results.
func AnalyzeBuckets(d0, d1 string, o FileOptions, claim analysis.Claim, b BucketOptions) (Buckets, error) {
	var rules []buckets.Rule
	for _, text := range b.Rules {
		rule, err := buckets.Parse(text)
		if err != nil {
			return Buckets{}, err
		}
		rules = append(rules, rule)
	}
	collector, err := buckets.NewCollector(rules)
	if err != nil {
		return Buckets{}, err
	}
	files, err := recorded.Open(d0, d1, o.Options)
	if err != nil {
		return Buckets{}, err
	}
	defer files.Close()
	in := files.Inputs()
	if unequal(in) {
		return Buckets{}, fmt.Errorf("%s has %d trials and %s has %d: give both files the same number of trials", d0, in[0].Trials, d1, in[1].Trials)
	}
	found := Buckets{Input: read.InputReport{D0: in[0], D1: in[1]}}
	var order analysis.Order
	next := files.Next
	if !o.InOrder && files.Pairs() > 0 {
		shuffled, err := recorded.Shuffle(files, firstOrder, order.Add)
		if err != nil {
			return Buckets{}, err
		}
		defer shuffled.Close()
		seed := uint64(firstOrder)
		next, found.Input.Seed, found.Input.Orders = shuffled.Next, &seed, 1
	}
	if err := collect(collector, next, files.Pairs(), o.InOrder, &order); err != nil {
		return Buckets{}, err
	}
	if err := files.Rest(); err != nil {
		return Buckets{}, err
	}
	if found.Report, err = collector.Analyze(claim, b.Confidence, b.MinCount); err != nil {
		return Buckets{}, err
	}
	for _, w := range append(append(o.orderWarnings(&order), unusedTrials(in)...), files.Warnings()...) {
		found.Warnings = append(found.Warnings, withheld.Public(w))
	}
	if b.Plots != "" {
		_, err := plot.WriteBuckets(b.Plots, found.Report)
		found.Warnings = unwritten(found.Warnings, err)
	}
	return found, nil
}

func collect(c *buckets.Collector, next func() (d0, d1 outcome.Outcome, err error), pairs int, inOrder bool, order *analysis.Order) error {
	for range pairs {
		x, y, err := next()
		if err != nil {
			return err
		}
		if inOrder {
			order.Add(x, y)
		}
		if err := c.Add(x, y); err != nil {
			return err
		}
	}
	return nil
}

// Shown returns the report with or without values of results.
func (b Buckets) Shown(values bool) Buckets {
	if values {
		all := make([]buckets.Bucket, len(b.Report.Buckets))
		for i, x := range b.Report.Buckets {
			x.Name = x.Name.Revealed()
			all[i] = x
		}
		b.Report.Buckets = all
	}
	return b
}

// maxListed is the number of buckets in the text, from each end of the order.
const maxListed = 10

// Write writes the report as text.
func (b Buckets) Write(w io.Writer) error {
	var text strings.Builder
	if b.Verdict == analysis.Violation {
		fmt.Fprintf(&text, "VIOLATION: the buckets leak at least epsilon %.4g, above the claimed %g\n", b.EpsilonLower, b.Claim.Epsilon)
	} else {
		fmt.Fprintf(&text, "no evidence against the claim in these buckets; this is not a proof of it\n")
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "  claimed\tepsilon %g, delta %g\n", b.Claim.Epsilon, b.Claim.Delta)
	fmt.Fprintf(table, "  lower bound\tepsilon %.4g at confidence %g, from %d pairs of trials; %d others chose the event\n", b.EpsilonLower, b.Confidence, b.Testing, b.Selecting)
	if b.Direction != "" {
		fmt.Fprintf(table, "  event\tmore likely on %s: %d of %d results on D0, %d on D1\n", b.Direction, b.Report.Event[0], b.Testing, b.Report.Event[1])
	}
	fmt.Fprintf(table, "  estimate\tepsilon %.4g, the point estimate of the bucket method from all pairs: no bound\n", float64(b.Estimate))
	fmt.Fprintf(table, "  D0 read as\t%s\n  D1 read as\t%s\n", b.Input.D0, b.Input.D1)
	for _, warning := range b.Warnings {
		fmt.Fprintf(table, "  warning\t%s\n", show.Printable(warning.String()))
	}
	fmt.Fprint(table, "\n  bucket\tD0\tD1\tevent\n")
	n := len(b.Report.Buckets)
	for i, x := range b.Report.Buckets {
		if n > 2*maxListed && i >= maxListed && i < n-maxListed {
			if i == maxListed {
				fmt.Fprintf(table, "  (%d more)\t\t\t\n", n-2*maxListed)
			}
			continue
		}
		mark := ""
		if x.InEvent {
			mark = "in the event"
		}
		fmt.Fprintf(table, "  %s\t%d\t%d\t%s\n", show.Shortened(show.Printable(x.Name.String())), x.D0, x.D1, mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, text.String())
	return err
}
