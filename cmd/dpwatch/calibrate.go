package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/calibrate"
)

func calibrateCommand(env environment) *cobra.Command {
	o := calibrate.Options{}
	cmd := &cobra.Command{
		Use: "calibrate", Short: "Audit the DP functions of an engine on known data, without a proxy", Args: cobra.NoArgs,
		Long: `Audit functions that return a noisy count, sum or average. dpwatch makes tables of several sizes in two temporary schemas of the engine's database, D1 without
one row of D0, calls each function with several epsilons, and drops the schemas. One row is one person.

--functions is KIND=EXPRESSION with the kind count, sum or average. Placeholders: $value (the column), $epsilon, $delta, $lower and $upper (the bounds of values),
$table (for functions that take the name of a table; there is no FROM then). In some tables one value is outside of the bounds.

The verdict on each case is an audit against the epsilon that the function was called with. The fit of the noise is a hint (correct, minor error, wrong) and decides nothing.

Exit codes: 0 no violation, 1 error, 2 violation.`,
		Example: `  dpwatch calibrate --engine postgres://dba@localhost/test --functions 'count=anon_count($value, $epsilon)' \
      --functions 'sum=anon_sum($value, $lower, $upper, $epsilon)' --functions 'average=anon_avg($value, $lower, $upper, $epsilon)'
  dpwatch calibrate --engine postgres://dba@localhost/test --functions 'count=noisy_count(count(*), $epsilon)' --epsilons 0.5,2 -o json`,
	}
	fs := cmd.Flags()
	fs.StringVar(&o.DSN, "engine", "", "connection string of a database with the functions, in which schemas may be created (required)")
	functions := fs.StringArray("functions", nil, "KIND=EXPRESSION; repeat it (required)")
	for _, name := range []string{"engine", "functions"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag was defined above
		}
	}
	fs.StringSliceVar(&o.SearchPath, "search-path", []string{"public"}, "schemas where the functions are found")
	fs.Float64SliceVar(&o.Epsilons, "epsilons", []float64{.1, 1, 3}, "the epsilons that functions are called with")
	fs.Float64Var(&o.Delta, "delta", 0, "the claimed delta")
	fs.IntSliceVar(&o.Rows, "rows", []int{2, 5, 10, 1000}, "numbers of rows of D0")
	fs.Float64Var(&o.Lower, "lower", 50, "lower bound of values")
	fs.Float64Var(&o.Upper, "upper", 100, "upper bound of values")
	fs.BoolVar(&o.Within, "within-bounds", false, "no value is outside of its bounds, for functions that do not clip values themselves")
	fs.Float64Var(&o.Confidence, "confidence", .999999, "one minus the probability that any right function is accused")
	fs.IntVar(&o.MaxTrials, "max-trials", 3000, "maximum number of pairs of executions per audit")
	fs.IntVar(&o.FitTrials, "fit-trials", 1000, "executions of each case for the fit of the noise")
	fs.DurationVar(&o.Timeout, "statement-timeout", 30*time.Second, "time limit of an execution; a timeout is an outcome")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, text := range *functions {
			f, err := calibrate.ParseFunction(text)
			if err != nil {
				return err
			}
			o.Functions = append(o.Functions, f)
		}
		p := progress(env.Stderr)
		o.Progress = func(done, all int) {
			if done == 1 {
				p.Begin("audits", all)
			}
			p.Add(1)
		}
		r, err := calibrate.Engine(cmd.Context(), o)
		p.End()
		if err != nil {
			return err
		}
		if err := write(env, r, asJSON()); err != nil {
			return err
		}
		if r.Violations() > 0 {
			return &exitError{code: exitViolation}
		}
		return nil
	}
	return cmd
}
