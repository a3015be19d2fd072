package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/replay"
)

// auditFlags are the flags of dpwatch audit.
type auditFlags struct {
	dsn, d0, from, sql, file   string
	protocol                   string
	engines                    []string
	d1, searchPath, params     []string
	epsilon, delta, confidence float64
	maxTrials                  int
	timeout                    time.Duration
	hoist                      bool
	config, plot               string
	deterministic              string
	varyText                   bool

	// What is not known from the flags alone.
	given  map[string]bool // flags on the command line
	cfg    *config.Config  // of --config; nil = none
	source string          // of the claim
	sorted bool            // the query fixes the order of its rows
}

func auditCommand(env environment) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use: "audit", Short: "Audit one query against a claim, now", Args: cobra.NoArgs,
		Long: `Replay one query on two neighbouring copies of the data and report whether it leaks more than is claimed.
Table names that resolve to the schema --from are replaced by --d0 and --d1. Nothing is written; give a role that may
only read these schemas. The report and the messages of errors show values of rows; --values=false withholds them, as the
alerts of dpwatch run do. With several neighbours the report is about the one that shows most, and the error rate is
shared among them. A violation is reported when fresh trials, each in a session of its own, have confirmed it. The copies must stay as they are: if they are replaced meanwhile, the audit ends without a verdict.

With --config, the connection, the copies, the tables, the claims, the confidence and the number of trials are those of
dpwatch run; flags override them, and --epsilon is not needed where the configuration claims something for the query.

Exit codes: 0 no evidence, 2 violation, 3 inconclusive, 1 fault.`,
		Example: `  dpwatch audit --config dpwatch.yaml --sql "SELECT anon_count(id, 0.5) FROM users"
  dpwatch audit --config dpwatch.yaml --file query.sql --d1 d1_2 --max-trials 2000 --plot plots
  dpwatch audit --dsn postgres://replay@localhost/shadow --d0 d0 --d1 d1 --epsilon 0.5 \
      --sql "SELECT anon_count(id, 0.5) FROM users"`,
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "config", "c", "", "path of dpwatch.yaml, for everything that no flag gives")
	fs.StringVar(&f.dsn, "dsn", "", "connection string of the database with both copies (required without --config)")
	fs.StringArrayVar(&f.engines, "engine", nil, "connection string of an engine beside the database: the trials go through it; repeated, one\nfor D0 and one for each --d1, and the query is sent as it is")
	fs.StringVar(&f.protocol, "protocol", "extended", "how the query is sent: extended, or simple, which has no parameters and is planned\nanew by every trial")
	fs.StringVar(&f.d0, "d0", "", "schema with the data (required without --config)")
	fs.StringSliceVar(&f.d1, "d1", nil, "schema with the data without one privacy unit (required without --config); several, by\ncomma, share the trials on D0")
	fs.StringVar(&f.from, "from", "public", "schema that the query's tables are in")
	fs.StringVar(&f.sql, "sql", "", "the query")
	fs.StringVar(&f.file, "file", "", "file with the query; - for standard input")
	fs.StringArrayVar(&f.params, "param", nil, "value of $1, $2, ... in text form; repeat it")
	fs.StringSliceVar(&f.searchPath, "search-path", []string{"public"}, "schemas where the query's functions are found")
	fs.Float64Var(&f.epsilon, "epsilon", 0, "the claimed epsilon (required without --config)")
	fs.Float64Var(&f.delta, "delta", 0, "the claimed delta")
	fs.Float64Var(&f.confidence, "confidence", 0.95, "one minus the rate of false alarms")
	fs.IntVar(&f.maxTrials, "max-trials", 10_000, "pairs of executions at most")
	fs.DurationVar(&f.timeout, "statement-timeout", 30*time.Second, "a trial that takes longer is an outcome of its own")
	fs.BoolVar(&f.hoist, "hoist", true, "compute once what every trial would compute alike, where the role may make temporary tables")
	fs.StringVar(&f.deterministic, "deterministic", "violation", deterministicUsage)
	fs.BoolVar(&f.varyText, "vary-text", false, "put a comment with a random number in front of each statement that confirms a violation, so that\na cache of results does not know it")
	fs.StringVar(&f.plot, "plot", "", "directory for plots (SVG and PNG) of the neighbour that the report is about")
	values := valuesFlag(cmd)
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		js, err := asJSON()
		if err != nil {
			return err
		}
		if err := f.resolve(env, fs); err != nil {
			return err
		}
		if f.plot != "" && !*values {
			return errors.New("--plot draws the values that --values=false withholds: give one of the two")
		}
		found, err := auditOnce(cmd.Context(), env, f)
		if err != nil && *values {
			return revealed(err)
		}
		if err != nil {
			return err
		}
		return conclude(env, found.shown(*values), js)
	}
	return cmd
}

// auditOnce runs one audit to its verdict or its budget.
func auditOnce(ctx context.Context, env environment, f auditFlags) (conclusion, error) {
	options := f.replayOptions()
	options.Warn = func(text string) { fmt.Fprintln(env.Stderr, "dpwatch: warning: "+text) }
	player, err := replay.New(options)
	if err != nil {
		return conclusion{}, err
	}
	q, err := f.query(env)
	if err != nil {
		return conclusion{}, err
	}
	copies, err := watchCopies(ctx, player, f.schemas())
	if err != nil {
		return conclusion{}, err
	}
	statement, err := f.rewrite(ctx, env, player, q)
	if err != nil {
		return conclusion{}, copies.explain(ctx, err)
	}
	worlds := statement.Worlds
	watch, err := newWatch(f, worlds)
	var infeasible *analysis.InfeasibleError
	switch {
	case errors.As(err, &infeasible):
		claim := analysis.Claim{Epsilon: f.epsilon, Delta: f.delta}
		report := refused(claim, f.confidence, err.Error())
		report.Claimed.Source = f.source
		return conclusion{Report: report, SQL: &audit.SQLPair{D0: worlds[0], D1: worlds[1]}}, nil
	case err != nil:
		return conclusion{}, err
	}
	run, err := player.Start(statement, rand.Uint64())
	if err != nil {
		return conclusion{}, err
	}
	defer run.Close()
	bar := progress(env.Stderr, f.maxTrials)
	err = gather(ctx, run, watch, copies, bar)
	if differ := statement.Hoist.Disagreed(); differ != nil {
		fmt.Fprintln(env.Stderr, "dpwatch: warning:", differ)
		if watch, err = newWatch(f, worlds); err != nil {
			return conclusion{}, err
		}
		bar.Reset()
		err = gather(ctx, run, watch, copies, bar)
	}
	if err == nil && watch.Found() {
		err = confirm(ctx, f, player, statement, watch, copies, bar)
	}
	_ = bar.Clear()
	if err = copies.explain(ctx, err); err != nil {
		return conclusion{}, err
	}
	found, err := watch.conclude(f, worlds)
	if err == nil && statement.Hoist != nil {
		report := statement.Hoist.Report()
		found.Hoisting = &report
	}
	return found, err
}

// gather collects rounds, and has hoisting verified before a violation is confirmed.
func gather(ctx context.Context, run *replay.Run, w *watch, copies *copyWatch, bar *progressbar.ProgressBar) error {
	if err := collect(ctx, run, auditBatch, w, copies, bar); err != nil || !w.Found() {
		return err
	}
	return run.Verify(ctx)
}

// confirm has the violation that the trials show confirmed on fresh ones, each in a session of its own, as dpwatch run does.
func confirm(ctx context.Context, f auditFlags, player *replay.Player, s replay.Statement, w *watch, copies *copyWatch, bar *progressbar.ProgressBar) error {
	hoisted := s.Hoist != nil && s.Hoist.Report().HoistedRounds > 0
	if err := w.Confirm(hoisted); err != nil {
		return err
	}
	if hoisted {
		s.Hoist.Stop("hoisted trials show a violation, which is confirmed on whole trials")
	}
	s.Separate = w.Separation(f.varyText)
	bar.Reset()
	bar.Describe("confirming")
	run, err := player.Start(s, rand.Uint64())
	if err != nil {
		return err
	}
	defer run.Close()
	return collect(ctx, run, confirmBatch, w, copies, bar)
}

// collect gives rounds to the watch until it has decided.
func collect(ctx context.Context, run *replay.Run, batchRounds int, w *watch, copies *copyWatch, bar *progressbar.ProgressBar) error {
	for batch, err := range run.Stream(ctx, batchRounds) {
		if err != nil {
			return err
		}
		for _, round := range batch.Rounds {
			if w.Decided() {
				break
			}
			w.add(round)
			_ = bar.Add(1)
		}
		if w.Decided() {
			break
		}
		if err := copies.now(ctx); err != nil {
			return err
		}
	}
	return nil
}

// How many rounds are asked for at a time, at least. Separate trials take longer.
const (
	auditBatch   = 25
	confirmBatch = 8
)

// progress is a bar on a terminal and nothing elsewhere.
func progress(w io.Writer, total int) *progressbar.ProgressBar {
	if !interactive(w) {
		return progressbar.DefaultSilent(int64(total))
	}
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("trials"),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
}
