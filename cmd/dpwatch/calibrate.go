package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/calibrate"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/terminal"
)

// calibration holds the flags of calibrate.
type calibration struct {
	engine    calibrate.Options
	zoo       calibrate.ZooOptions
	functions []string
	binDir    string
	format    string
}

func calibrateCommand(env environment) *cobra.Command {
	f := calibration{format: "text"}
	cmd := &cobra.Command{
		Use: "calibrate", Short: "Audit the DP functions of an engine, or the auditor itself, on known data", Args: cobra.NoArgs,
		Long: `With --engine and --functions: audit functions that return a noisy count, sum or average. dpwatch makes tables of several sizes in two temporary schemas of
the engine's database, D1 without one row of D0, calls each function with several epsilons, and drops the schemas. One row is one person.

--functions is KIND=EXPRESSION with the kind count, sum or average. Placeholders: $value (the column), $epsilon, $delta, $lower and $upper (the bounds of values),
$table (for functions that take the name of a table; there is no FROM then). In some tables one value is outside of the bounds.
The verdict on each case is an audit against the epsilon that the function was called with. The fit of the noise is a hint (correct, minor error, wrong) and decides nothing.

Without: audit the mechanisms of the demo, which are known to be right or wrong, on a temporary PostgreSQL or a test database (--dsn, as superuser). The report shows the
rate of false alarms for right ones, and after how many trials wrong ones are found.

Exit codes: 0 no evidence of a violation; 1 error; 2 a violation; 3 no violation, but all audits of a function are inconclusive. Without --engine: 0 the error rate
of the auditor is kept; 1 error; 2 right queries cause too many false alarms, or wrong ones are not found.`,
		Example: `  dpwatch calibrate --engine postgres://dba@localhost/test --functions 'count=anon_count($value, $epsilon)' \
      --functions 'sum=anon_sum($value, $lower, $upper, $epsilon)' --functions 'average=anon_avg($value, $lower, $upper, $epsilon)'
  dpwatch calibrate --engine postgres://dba@localhost/test --functions 'count=noisy_count(count(*), $epsilon)' --epsilons 0.5,2 -o json
  dpwatch calibrate -o html >calibration.html`,
	}
	o, fs := &f.engine, cmd.Flags()
	fs.StringVar(&o.DSN, "engine", "", "connection string of a database with the functions, in which schemas may be created")
	fs.StringArrayVar(&f.functions, "functions", nil, "KIND=EXPRESSION, with --engine; repeat it")
	cmd.MarkFlagsRequiredTogether("engine", "functions")
	fs.StringSliceVar(&o.SearchPath, "search-path", []string{"public"}, "schemas where the functions are found")
	fs.Float64SliceVar(&o.Epsilons, "epsilons", []float64{.1, 1, 3}, "the epsilons that functions are called with")
	fs.Float64Var(&o.Delta, "delta", 0, "the claimed delta")
	fs.IntSliceVar(&o.Rows, "rows", []int{2, 5, 10, 1000}, "numbers of rows of D0")
	fs.Float64Var(&o.Lower, "lower", 50, "lower bound of values")
	fs.Float64Var(&o.Upper, "upper", 100, "upper bound of values")
	fs.BoolVar(&o.Within, "within-bounds", false, "no value is outside of its bounds, for functions that do not clip values themselves")
	fs.IntVar(&o.FitTrials, "fit-trials", 1000, "executions of each case for the fit of the noise")
	fs.StringVar(&f.zoo.DSN, "dsn", "", "without --engine: connection string of a test database, as superuser (default: a temporary PostgreSQL)")
	fs.StringVar(&f.binDir, "pg-bindir", "", "directory with initdb and postgres (default: DPWATCH_PG_BINDIR, then the usual places)")
	fs.IntVar(&f.zoo.Runs, "runs", 10, "without --engine: audits of each query, whole and hoisted")
	fs.Float64Var(&o.Confidence, "confidence", .999999, "with --engine: one minus the probability of a false alarm in the whole battery; without: that of\neach audit (default 0.95)")
	fs.IntVar(&o.MaxTrials, "max-trials", 3000, "maximum number of pairs of executions per audit (without --engine: default 1000)")
	fs.DurationVar(&o.Timeout, "statement-timeout", 30*time.Second, "time limit of an execution; a timeout is an outcome")
	fs.VarP(choice{&f.format, []string{"text", "json", "html"}}, "output", "o", "text, json or html (one page with plots, which loads nothing)")
	cmd.MarkFlagsMutuallyExclusive("engine", "dsn")
	cmd.MarkFlagsMutuallyExclusive("engine", "runs")
	cmd.MarkFlagsMutuallyExclusive("engine", "pg-bindir")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.DSN != "" {
			return f.auditEngine(cmd.Context(), env)
		}
		for _, name := range []string{"search-path", "epsilons", "delta", "rows", "lower", "upper", "within-bounds", "fit-trials"} {
			if fs.Changed(name) {
				return fmt.Errorf("--%s is for the functions of an engine: give also --engine and --functions", name)
			}
		}
		f.zoo.Confidence, f.zoo.MaxTrials, f.zoo.Timeout = .95, 1000, o.Timeout
		if fs.Changed("confidence") {
			f.zoo.Confidence = o.Confidence
		}
		if fs.Changed("max-trials") {
			f.zoo.MaxTrials = o.MaxTrials
		}
		return f.auditZoo(cmd.Context(), env)
	}
	return cmd
}

// auditEngine audits the functions of an engine.
func (f *calibration) auditEngine(ctx context.Context, env environment) error {
	for _, text := range f.functions {
		function, err := calibrate.ParseFunction(text)
		if err != nil {
			return fmt.Errorf("--functions %w", err)
		}
		f.engine.Functions = append(f.engine.Functions, function)
	}
	show, end := counted(env)
	f.engine.Progress = show
	r, err := calibrate.Engine(ctx, f.engine)
	if end(); err != nil {
		return err
	}
	return f.conclude(env, r, r.Verdict())
}

// auditZoo audits the known mechanisms.
func (f *calibration) auditZoo(ctx context.Context, env environment) (err error) {
	if f.zoo.DSN == "" {
		cluster, failed := pgtemp.Start(ctx, pgtemp.Options{BinDir: f.binDir, Getenv: env.Getenv})
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, cluster.Stop()) }()
		f.zoo.DSN = cluster.DSN("postgres")
	}
	show, end := counted(env)
	f.zoo.Progress = show
	r, err := calibrate.Zoo(ctx, f.zoo)
	if end(); err != nil {
		return err
	}
	verdict := analysis.NoEvidence
	if len(r.Faults()) > 0 {
		verdict = analysis.Violation
	}
	return f.conclude(env, r, verdict)
}

// countedEvery is the least time between two lines about the number of audits, without a terminal.
const countedEvery = 10 * time.Second

// counted returns a function that shows how many audits are done, and one that ends it: a bar, or lines where there is no
// terminal.
func counted(env environment) (show func(done, all int), end func()) {
	if !terminal.Interactive(env.Stderr) {
		began, last := time.Now(), time.Time{}
		return func(done, all int) {
			if now := time.Now(); now.Sub(last) >= countedEvery || done == all {
				last = now
				fmt.Fprintf(env.Stderr, "dpwatch: %d of %d audits done, %.0f s\n", done, all, now.Sub(began).Seconds())
			}
		}, func() {}
	}
	p := progress(env.Stderr)
	return func(done, all int) {
		if done == 1 {
			p.Begin(audits, all)
		}
		p.Add(1)
	}, p.End
}

// page is a report that can be a page.
type page interface {
	writer
	WriteHTML(w io.Writer) error
}

// asPage writes a report as a page.
type asPage struct{ page }

func (p asPage) Write(w io.Writer) error { return p.WriteHTML(w) }

// conclude writes a report. The error has the exit code.
func (f *calibration) conclude(env environment, r page, verdict analysis.Verdict) error {
	if f.format == "html" {
		return conclude(env, asPage{r}, verdict, false)
	}
	return conclude(env, r, verdict, f.format == "json")
}
