package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/oneoff"
	"github.com/dpwatch/dpwatch/internal/recorded"
)

func analyzeCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "analyze", Short: "Audit results that were collected elsewhere", Args: cobra.NoArgs,
		Long: `Read recorded results of the same query on D0 and on D1 and report how much they leak.

Each line of a file is one result: a number or a word; an empty line for "no row"; or a JSON object,
{"columns":[..],"rows":[[..],..]} or {"error":"22012"}. CSV files with a line of column names are also read: then each line
is a trial that returned one row. With --trial COLUMN, rows with the same value in that column are one trial, and --key COLUMN
names the columns of the group key. The format is detected, and the report shows how each file was read; --format sets it. If a
file has no known format or the two files do not match, the error names the line.

Recorded results may be sorted. Therefore each file is analyzed in up to 5 random orders, whose average evidence at the end
decides; the report warns if the order of the lines shows changes or dependence. With --in-order the lines are in the order of execution, and trials that show
changes or dependence are not a violation.

With --counts, only the bucket estimator runs, on {"d0":[..],"d1":[..]} (equal totals), without a confidence statement.

With --partition RULE, the bucket estimator runs with your rules, and a lower bound at --confidence decides: 0,10,20 (intervals), {a,b} (values) or
quantile:10 (edges chosen from the first half of the results), with COLUMN= before it for one of several columns, or rows= for the number of rows.
Several rules are combined.

With --response P, --answers is a file with the answers of randomised response: the truth with probability P, else one of the other --categories.
The report has the true shares and counts with intervals, the epsilon of the mechanism against the claim, and what an attacker learns from an answer.`,
		Example: `  dpwatch analyze --d0 d0.txt --d1 d1.txt --epsilon 1
  dpwatch analyze --d0 d0.csv --d1 d1.csv --epsilon 1 --trial run --key store_id
  dpwatch analyze --d0 d0.txt --d1 d1.txt --mu 0.268
  dpwatch analyze --d0 d0.txt --d1 d1.txt --epsilon 1 --plot plots
  dpwatch analyze --counts counts.json --delta 0 --min-count 5 -o json
  dpwatch analyze --d0 d0.txt --d1 d1.txt --epsilon 1 --partition quantile:8 --plot plots
  dpwatch analyze --response 0.75 --answers answers.txt --epsilon 1.1`,
	}
	d0 := cmd.Flags().String("d0", "", "file with the results on D0: lines, JSON lines or CSV")
	d1 := cmd.Flags().String("d1", "", "file with the results on D1, in the same format")
	counts := cmd.Flags().String("counts", "", "file with bucket counts; runs only the bucket estimator")
	epsilon := cmd.Flags().Float64("epsilon", 0, "the claimed epsilon (required unless --mu, --rho, --curve or --counts is given)")
	delta := cmd.Flags().Float64("delta", 0, "the claimed delta")
	claimed := curveFlags(cmd.Flags())
	confidence := cmd.Flags().Float64("confidence", 0.95, "one minus the rate of false alarms")
	minCount := cmd.Flags().Int("min-count", 5, "smallest count that the bucket estimator uses")
	plots := cmd.Flags().String("plot", "", "directory for plots (SVG): histogram of numbers, bars of categories, wealth, bound, privacy profile")
	values := valuesFlag(cmd)
	var deterministic, floatingPoint string
	policyFlags(cmd, &deterministic, &floatingPoint)
	read := recordedFlags(cmd)
	rules := cmd.Flags().StringArray("partition", nil, "rule that divides the results into buckets; repeat it to combine rules")
	var response responseFlags
	response.add(cmd)
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := claimed()
		if err != nil {
			return err
		}
		if c != "" && (*counts != "" || len(*rules) > 0 || cmd.Flags().Changed("response")) {
			return errors.New("--counts, --partition and --response test one epsilon: give --epsilon and --delta instead of --mu, --rho or --curve")
		}
		if given, err := response.given(cmd); given || err != nil {
			if err != nil {
				return err
			}
			var claim *analysis.Claim
			if cmd.Flags().Changed("epsilon") {
				claim = &analysis.Claim{Epsilon: *epsilon, Delta: *delta}
			}
			return response.analyze(env, read(), claim, *confidence, *values, asJSON())
		}
		if *counts != "" {
			if *d0 != "" || *d1 != "" || *plots != "" {
				return errors.New("give either --counts, or --d0 and --d1 (and --plot)")
			}
			for _, name := range []string{"format", "trial", "key", "fill-gaps", "partition"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s cannot be used with --counts: it applies to --d0 and --d1", name)
				}
			}
			return analyzeCounts(env, *counts, *delta, *minCount, asJSON())
		}
		if *d0 == "" || *d1 == "" || !cmd.Flags().Changed("epsilon") && c == "" {
			return errors.New("give --d0 FILE --d1 FILE --epsilon E (or --mu, --rho, --curve), or --counts FILE")
		}
		if *plots != "" && !*values {
			return errors.New("--plot shows values that --values=false withholds: give only one of the two")
		}
		if len(*rules) > 0 {
			for _, name := range []string{"deterministic", "floating-point"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s cannot be used with --partition", name)
				}
			}
			found, err := oneoff.AnalyzeBuckets(*d0, *d1, read(), analysis.Claim{Epsilon: *epsilon, Delta: *delta},
				oneoff.BucketOptions{Rules: *rules, Confidence: *confidence, MinCount: *minCount, Plots: *plots})
			if err != nil {
				return err
			}
			return conclude(env, found.Shown(*values), found.Verdict, asJSON())
		}
		opt := analysis.Options{Confidence: *confidence, Deterministic: analysis.DeterministicPolicy(deterministic), FloatingPoint: analysis.FloatingPointPolicy(floatingPoint)}
		found, err := oneoff.Analyze(*d0, *d1, read(), analysis.CurveClaim(c, *epsilon, *delta), opt, *plots)
		if err != nil {
			return err
		}
		return conclude(env, found.Shown(*values), found.Verdict, asJSON())
	}
	return cmd
}

// recordedFlags adds the flags that configure reading files of results.
func recordedFlags(cmd *cobra.Command) func() oneoff.FileOptions {
	inOrder := cmd.Flags().Bool("in-order", false, "the lines are in the order of execution: analyze them in that order (default: in random order)")
	cmd.Flags().Uint64("seed", 1, "no effect: the random orders are the same for all files")
	format := cmd.Flags().String("format", string(recorded.Auto), "format of the files: auto, lines, csv or jsonl")
	trial := cmd.Flags().String("trial", "", "column of CSV files whose value is the same in all rows of one trial")
	keys := cmd.Flags().StringArray("key", nil, "column of the group key, with --trial; repeat it for several columns; by default the key is detected")
	gaps := cmd.Flags().Bool("fill-gaps", false, "with --trial: missing trial numbers are trials that returned no row")
	return func() oneoff.FileOptions {
		return oneoff.FileOptions{
			Options: recorded.Options{
				Format: recorded.Format(*format), Trial: *trial, Keys: *keys, FillGaps: *gaps,
			},
			InOrder: *inOrder,
		}
	}
}

// analyzeCounts runs the bucket estimator on recorded counts.
func analyzeCounts(env environment, path string, delta float64, minCount int, asJSON bool) error {
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
	if asJSON {
		var value *float64 // NaN and infinity have no JSON form: the value is null, and the text says which
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
		return fmt.Errorf("d0 has %d buckets and d1 has %d: give both the same number of buckets, at least one", len(d0), len(d1))
	}
	var total [2]int
	for i := range d0 {
		if d0[i] < 0 || d1[i] < 0 {
			return fmt.Errorf("bucket %d has a negative count", i)
		}
		if d0[i] > math.MaxInt-total[0] || d1[i] > math.MaxInt-total[1] {
			return fmt.Errorf("bucket %d: the counts up to it exceed %d together", i, math.MaxInt)
		}
		total[0] += d0[i]
		total[1] += d1[i]
	}
	if total[0] != total[1] {
		return fmt.Errorf("d0 has %d results and d1 has %d: the bucket estimator needs equal numbers", total[0], total[1])
	}
	return nil
}
