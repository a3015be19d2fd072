package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/recorded"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// inputReport says how the files of recorded results were read.
type inputReport struct {
	D0 recorded.Input `json:"d0"`
	D1 recorded.Input `json:"d1"`
	// Seed is that of the random order in which the results were analyzed; nil for the order of the files.
	Seed *uint64 `json:"seed"`
}

// fileOptions say how files of results are read, and in which order they are analyzed.
type fileOptions struct {
	recorded.Options
	inOrder bool   // that of the files; else a random one
	seed    uint64 // of the random order
}

// recordedFlags adds the flags that say how files of results are read.
func recordedFlags(cmd *cobra.Command) func() fileOptions {
	inOrder := cmd.Flags().Bool("in-order", false, "the lines are in the order of execution: analyze them in that order, and hold the verdict to it (default: in random order)")
	seed := cmd.Flags().Uint64("seed", 1, "seed of the random order")
	format := cmd.Flags().String("format", string(recorded.Auto), "how the files hold results: auto, lines, csv, tsv or jsonl")
	header := cmd.Flags().String("header", string(recorded.HeaderAuto), "whether CSV and TSV begin with the names of the columns: auto, yes or no")
	trial := cmd.Flags().String("trial", "", "column of CSV or TSV, by name or position, whose value is the same in all rows of one trial")
	keys := cmd.Flags().StringArray("key", nil, "column of the group key, with --trial; repeat it for several; without it the key is learned")
	gaps := cmd.Flags().Bool("fill-gaps", false, "with --trial: trial numbers that a file lacks are trials that returned no row")
	return func() fileOptions {
		return fileOptions{
			Options: recorded.Options{
				Format: recorded.Format(*format), Header: recorded.Header(*header), Trial: *trial, Keys: *keys, FillGaps: *gaps,
			},
			inOrder: *inOrder, seed: *seed,
		}
	}
}

// analyzeFiles feeds two files of results, pair by pair, in random order or in theirs. It draws into the directory plots, if one is
// given and there is anything to draw.
func analyzeFiles(d0, d1 string, o fileOptions, claim analysis.Claim, opt analysis.Options, plots string) (conclusion, error) {
	files, err := recorded.Open(d0, d1, o.Options)
	if err != nil {
		return conclusion{}, err
	}
	defer files.Close()
	in := files.Inputs()
	found := conclusion{Input: &inputReport{D0: in[0], D1: in[1]}}
	pairs := files.Pairs()
	opt.MaxTrials, opt.Salt = max(pairs, 1), rand.Text()
	audit, err := analysis.New(claim, opt)
	var infeasible *analysis.InfeasibleError
	used, reason := pairs, ""
	var misfit error
	switch isInfeasible := errors.As(err, &infeasible); {
	case err != nil && !isInfeasible:
		return conclusion{}, err
	case pairs == 0:
		reason = fmt.Sprintf("one world is empty: %d results on D0, %d on D1", in[0].Trials, in[1].Trials)
	case unequal(in):
		used, misfit = 0, fmt.Errorf("%s holds %d trials and %s %d: the same number of each is needed; cut the longer file if only its first trials count", d0, in[0].Trials, d1, in[1].Trials)
	case isInfeasible:
		used, reason = 0, err.Error()
	}
	var order analysis.Order
	next := files.Next
	if used > 0 && !o.inOrder {
		shuffled, err := recorded.Shuffle(files, o.seed, order.Add)
		if err != nil {
			return conclusion{}, err
		}
		defer shuffled.Close()
		next, found.Input.Seed = shuffled.Next, &o.seed
	}
	for range used {
		x, y, err := next()
		if err != nil {
			return conclusion{}, err
		}
		if o.inOrder {
			order.Add(x, y)
		}
		audit.Add(x, y)
	}
	if err := cmp.Or(files.Rest(), misfit); err != nil { // a broken result is reported first
		return conclusion{}, err
	}
	if reason != "" {
		found.Report = refused(claim, opt.Confidence, reason)
	} else {
		if plots != "" {
			if _, err := plot.Write(plots, audit.Figures()); err != nil {
				return conclusion{}, err
			}
		}
		found.Report = audit.Report()
		if o.inOrder {
			found.Report = order.Temper(found.Report)
		}
		found.Claimed.Source = "flag"
	}
	for _, w := range slices.Concat(o.orderWarnings(&order), unusedTrials(in), files.Warnings()) {
		found.Warnings = append(found.Warnings, withheld.Public(w))
	}
	return found, nil
}

// orderWarnings says what the order of the files shows.
func (o fileOptions) orderWarnings(order *analysis.Order) (all []string) {
	for _, finding := range order.Findings() {
		if o.inOrder {
			finding = "in the order of the files " + finding
		} else {
			finding = fmt.Sprintf("in the order of the files %s: the results are sorted, or the trials were not independent or not of one law; they were analyzed in random order (seed %d). "+
				"If the files are in the order of execution, repeat with --in-order", finding, o.seed)
		}
		all = append(all, finding)
	}
	return all
}

// unequal reports whether one file has more than twice the trials of the other: then they are hardly of one experiment.
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

// describeInput says in words how a file was read.
func describeInput(in recorded.Input) string {
	if in.Format == recorded.Lines || in.Format == recorded.JSONL {
		return fmt.Sprintf("%s: one result a line, %d results%s", in.Format, in.Trials, empties(in))
	}
	header := "no header"
	if in.Header {
		header = "header"
	}
	text := fmt.Sprintf("%s: %s, columns %s", in.Format, header, strings.Join(in.Columns, ", "))
	if in.Delimiter == ";" {
		text += " (separated by semicolons)"
	}
	if in.Trial == "" {
		return text + fmt.Sprintf("; every line a trial, %d trials%s", in.Trials, empties(in))
	}
	text += "; trials by " + in.Trial
	if len(in.Keys) > 0 {
		text += ", keys " + strings.Join(in.Keys, ", ")
	}
	return text + fmt.Sprintf("; %d rows in %d trials%s", in.Rows, in.Trials, empties(in))
}

func empties(in recorded.Input) string {
	if in.Empty == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them without a row", in.Empty)
}
