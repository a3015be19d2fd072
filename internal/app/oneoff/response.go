package oneoff

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/response/survey"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/recorded"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Survey is the report on the answers of randomised response.
type Survey struct {
	survey.Report
	Input recorded.Input `json:"input"`
}

// AnalyzeResponse reads a file with one answer per trial and analyzes it.
func AnalyzeResponse(path string, read recorded.Options, o survey.Options) (Survey, error) {
	file, err := recorded.Open(path, path, read)
	if err != nil {
		return Survey{}, err
	}
	defer file.Close()
	counts := map[outcome.Value]int{}
	for n := range file.Pairs() {
		answer, _, err := file.Next()
		if err != nil {
			return Survey{}, err
		}
		if answer.Failed() || len(answer.Rows) != 1 || len(answer.Rows[0]) != 1 || answer.Rows[0][0].Kind == outcome.Null {
			return Survey{}, fmt.Errorf("%s: answer %d is not one value: randomised response names one category each time; remove answers that are missing", path, n+1)
		}
		value := answer.Rows[0][0]
		if value.Kind == outcome.Number && math.IsNaN(value.Num) {
			return Survey{}, fmt.Errorf("%s: answer %d is not a number: remove answers that are missing", path, n+1)
		}
		if counts[value]++; len(counts) > o.Categories {
			return Survey{}, fmt.Errorf("%s: the answers have more than %d categories: give their number with --categories", path, o.Categories)
		}
	}
	if err := file.Rest(); err != nil {
		return Survey{}, err
	}
	report, err := survey.New(answersOf(counts), o)
	if err != nil {
		return Survey{}, fmt.Errorf("%s: %w", path, err)
	}
	return Survey{Report: report, Input: file.Inputs()[0]}, nil
}

// answersOf sorts the categories: numbers by size, then texts.
func answersOf(counts map[outcome.Value]int) (all []survey.Answer) {
	values := make([]outcome.Value, 0, len(counts))
	for v := range counts {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b outcome.Value) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Num, b.Num), cmp.Compare(a.Text, b.Text))
	})
	for i, v := range values {
		a := survey.Answer{Value: v.Num, Count: counts[v]}
		name := strconv.FormatFloat(v.Num, 'g', -1, 64)
		switch v.Kind {
		case outcome.Text:
			name, a.Value = v.Text, math.NaN()
		case outcome.Bool:
			name = strconv.FormatBool(v.Num != 0)
		}
		a.Name = withheld.New(name, fmt.Sprintf("category %d", i+1))
		all = append(all, a)
	}
	return all
}

// Shown returns the report with or without the names of the categories.
func (s Survey) Shown(values bool) Survey {
	if values {
		s.Shares = slices.Clone(s.Shares)
		for i := range s.Shares {
			s.Shares[i].Name = s.Shares[i].Name.Revealed()
		}
	}
	return s
}

// Write writes the report as text.
func (s Survey) Write(w io.Writer) error {
	var b strings.Builder
	switch s.Verdict {
	case analysis.Violation:
		fmt.Fprintf(&b, "VIOLATION: %s\n", s.Reason)
	case analysis.Inconclusive:
		fmt.Fprintf(&b, "inconclusive: %s\n", s.Reason)
	case analysis.NoEvidence:
		fmt.Fprintf(&b, "no evidence against the claim: its loss is at most the claimed one, and %s\n", s.Reason)
	default:
		fmt.Fprintf(&b, "no claim was given; %s\n", s.Reason)
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "  mechanism\t%d categories, the truth with probability %.4g, each other one with %.4g: epsilon %.4g\n", s.Categories, s.Truth, s.Other, float64(s.Epsilon))
	if s.Claim != nil {
		fmt.Fprintf(table, "  claimed\tepsilon %g, delta %g; the mechanism needs delta %.4g at this epsilon\n", s.Claim.Epsilon, s.Claim.Delta, float64(s.Delta))
	}
	fmt.Fprintf(table, "  answers\t%d (read as %s)\n", s.Answers, s.Input)
	if s.Unseen > 0 {
		fmt.Fprintf(table, "  unseen\t%d of the declared categories are in no answer\n", s.Unseen)
	}
	if m := s.Mean; m != nil {
		fmt.Fprintf(table, "  mean\t%.4g (%.4g to %.4g)\n", float64(m.Estimate), float64(m.Lower), float64(m.Upper))
	}
	fmt.Fprintf(table, "  breach\todds above %g; one answer suffices if the prior probability is above %.4g\n", s.BreachOdds, float64(s.BreachPrior))
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\nTrue shares, each with its %g %% interval, and the odds of a category for a person before and after one answer that names it:\n", 100*s.Confidence)
	table = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  category\tanswers\tshare\tcount\tprior odds\tposterior odds\tanswers to a breach")
	for _, c := range s.Shares {
		answers := "never"
		if c.AnswersToBreach != nil {
			answers = strconv.Itoa(*c.AnswersToBreach)
		}
		fmt.Fprintf(table, "  %s\t%d\t%.4f (%.4f to %.4f)\t%.0f (%.0f to %.0f)\t%.4g\t%.4g\t%s\n", show.Shortened(show.Printable(c.Name.String())), c.Observed,
			float64(c.Share.Estimate), float64(c.Share.Lower), float64(c.Share.Upper), float64(c.Count.Estimate), float64(c.Count.Lower), float64(c.Count.Upper),
			float64(c.PriorOdds), float64(c.PosteriorOdds), answers)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}
