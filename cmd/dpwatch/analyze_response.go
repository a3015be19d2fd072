package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/response/survey"
	"github.com/dpwatch/dpwatch/internal/app/oneoff"
)

// responseFlags are the flags of analyze for the answers of randomised response.
type responseFlags struct {
	truth, breach float64
	answers       string
	categories    int
}

func (f *responseFlags) add(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.truth, "response", 0, "analyze randomised response with this probability of the true category (with --answers)")
	cmd.Flags().StringVar(&f.answers, "answers", "", "file with one answer per trial, for --response")
	cmd.Flags().IntVar(&f.categories, "categories", 2, "number of categories, for --response")
	cmd.Flags().Float64Var(&f.breach, "breach-odds", 2, "posterior odds above which an answer is a breach, for --response")
}

// given reports whether a flag of randomised response is set, and an error if they do not fit the others.
func (f *responseFlags) given(cmd *cobra.Command) (bool, error) {
	set := cmd.Flags().Changed
	if !set("response") {
		for _, name := range []string{"answers", "categories", "breach-odds"} {
			if set(name) {
				return false, fmt.Errorf("--%s is for randomised response: give also --response P", name)
			}
		}
		return false, nil
	}
	for _, name := range []string{"d0", "d1", "counts", "plot", "in-order", "seed", "trial", "key", "fill-gaps", "deterministic", "floating-point", "min-count", "partition"} {
		if set(name) {
			return false, fmt.Errorf("--%s cannot be used with --response", name)
		}
	}
	if f.answers == "" {
		return false, errors.New("give --response P --answers FILE")
	}
	if set("delta") && !set("epsilon") {
		return false, errors.New("--delta needs --epsilon: together they are the claim")
	}
	return true, nil
}

// analyze reads the answers and writes the report.
func (f *responseFlags) analyze(env environment, read oneoff.FileOptions, claim *analysis.Claim, confidence float64, values, asJSON bool) error {
	found, err := oneoff.AnalyzeResponse(f.answers, read.Options, survey.Options{
		Truth: f.truth, Categories: f.categories, Claim: claim, Confidence: confidence, BreachOdds: f.breach,
	})
	if err != nil {
		return err
	}
	return conclude(env, found.Shown(values), found.Verdict, asJSON)
}
