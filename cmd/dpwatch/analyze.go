package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

func analyzeCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "analyze", Short: "Audit results that were collected elsewhere", Args: cobra.NoArgs,
		Long: `Read recorded results, one a line, of the same query on D0 and on D1, and tell how much they leak.
A line is a bare number or word; an empty line is "no row"; or {"columns":[..],"rows":[[..],..]}, or {"error":"22012"}.
With --counts: the bucket estimator alone, on {"d0":[..],"d1":[..]} (equal totals), without a confidence statement.`,
		Example: `  dpwatch analyze --d0 d0.txt --d1 d1.txt --epsilon 1
  dpwatch analyze --d0 d0.txt --d1 d1.txt --epsilon 1 --plot plots
  dpwatch analyze --counts counts.json --delta 0 --min-count 5 -o json`,
	}
	d0 := cmd.Flags().String("d0", "", "file with the results on D0")
	d1 := cmd.Flags().String("d1", "", "file with the results on D1")
	counts := cmd.Flags().String("counts", "", "file with bucket counts; runs the bucket estimator alone")
	epsilon := cmd.Flags().Float64("epsilon", 0, "the claimed epsilon (required, but with --counts)")
	delta := cmd.Flags().Float64("delta", 0, "the claimed delta")
	confidence := cmd.Flags().Float64("confidence", 0.95, "one minus the rate of false alarms")
	minCount := cmd.Flags().Int("min-count", 5, "smallest count that the bucket estimator uses")
	plots := cmd.Flags().String("plot", "", "directory for plots (SVG and PNG): histogram of numbers, bars of categories, wealth, bound, privacy profile")
	values := valuesFlag(cmd)
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		js, err := asJSON()
		if err != nil {
			return err
		}
		if *counts != "" {
			if *d0 != "" || *d1 != "" || *plots != "" {
				return errors.New("give --counts, or --d0 and --d1 (and --plot), not both")
			}
			return analyzeCounts(env, *counts, *delta, *minCount, js)
		}
		if *d0 == "" || *d1 == "" || !cmd.Flags().Changed("epsilon") {
			return errors.New("give --d0 FILE --d1 FILE --epsilon E, or --counts FILE")
		}
		if *plots != "" && !*values {
			return errors.New("--plot draws the values that --values=false withholds: give one of the two")
		}
		r, err := analyzeFiles(*d0, *d1, analysis.Claim{Epsilon: *epsilon, Delta: *delta}, *confidence, *plots)
		if err != nil {
			return err
		}
		return conclude(env, conclusion{Report: r}.shown(*values), js)
	}
	return cmd
}

// analyzeFiles feeds two files of results, pair by pair, in the order of their lines. It draws into the directory plots,
// if one is given and there is anything to draw.
func analyzeFiles(d0, d1 string, claim analysis.Claim, confidence float64, plots string) (analysis.Report, error) {
	var worlds [2]*lines
	for i, path := range []string{d0, d1} {
		l, err := openLines(path)
		if err != nil {
			return analysis.Report{}, err
		}
		defer l.Close()
		worlds[i] = l
	}
	n0, n1 := worlds[0].total, worlds[1].total
	pairs := min(n0, n1)
	audit, err := analysis.New(claim, analysis.Options{Confidence: confidence, MaxTrials: max(pairs, 1), Salt: rand.Text()})
	var infeasible *analysis.InfeasibleError
	used, reason := pairs, ""
	switch isInfeasible := errors.As(err, &infeasible); {
	case err != nil && !isInfeasible:
		return analysis.Report{}, err
	case pairs == 0:
		reason = fmt.Sprintf("one world is empty: %d results on D0, %d on D1", n0, n1)
	case isInfeasible:
		used, reason = 0, err.Error()
	}
	for range used {
		x, err := worlds[0].outcome()
		if err != nil {
			return analysis.Report{}, err
		}
		y, err := worlds[1].outcome()
		if err != nil {
			return analysis.Report{}, err
		}
		audit.Add(x, y)
	}
	for _, l := range worlds {
		if err := l.rest(); err != nil {
			return analysis.Report{}, err
		}
	}
	if reason != "" {
		return refused(claim, confidence, reason), nil
	}
	if plots != "" {
		if _, err := plot.Write(plots, audit.Figures()); err != nil {
			return analysis.Report{}, err
		}
	}
	r := audit.Report()
	r.Claimed.Source = "flag"
	if n0 != n1 {
		r.Warnings = append(r.Warnings, withheld.Sprintf("%d results on D0 and %d on D1: the first %d of each were used", n0, n1, pairs))
	}
	return r, nil
}

func refused(claim analysis.Claim, confidence float64, reason string) analysis.Report {
	r := analysis.Refused(claim, confidence, reason)
	r.Claimed.Source = "flag"
	return r
}

// analyzeCounts runs the bucket estimator on recorded counts.
func analyzeCounts(env environment, path string, delta float64, minCount int, js bool) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read counts: %w", err)
	}
	var in struct {
		D0 []int `json:"d0"`
		D1 []int `json:"d1"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf(`%s: not {"d0":[..],"d1":[..]} with whole numbers: %w`, path, err)
	}
	if err := checkCounts(in.D0, in.D1); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !(delta >= 0 && delta < 1) {
		return fmt.Errorf("--delta %v: must be at least 0 and less than 1", delta)
	}
	estimate := analysis.BucketEstimate(in.D0, in.D1, delta, minCount)
	if js {
		var value *float64 // NaN and infinity have no JSON form: null, and the text says which
		if !math.IsNaN(estimate) && !math.IsInf(estimate, 0) {
			value = &estimate
		}
		return json.NewEncoder(env.Stdout).Encode(struct {
			Estimate *float64 `json:"epsilon_estimate"`
			Text     string   `json:"text"`
		}{value, fmt.Sprint(estimate)})
	}
	_, err = fmt.Fprintln(env.Stdout, estimate)
	return err
}

func checkCounts(d0, d1 []int) error {
	if len(d0) == 0 || len(d0) != len(d1) {
		return fmt.Errorf("d0 has %d buckets and d1 has %d: give both the same number, at least one", len(d0), len(d1))
	}
	var total [2]int
	for i := range d0 {
		if d0[i] < 0 || d1[i] < 0 {
			return fmt.Errorf("bucket %d has a negative count", i)
		}
		total[0] += d0[i]
		total[1] += d1[i]
	}
	if total[0] != total[1] {
		return fmt.Errorf("d0 counts %d results and d1 counts %d: the bucket estimator needs as many of each", total[0], total[1])
	}
	return nil
}
