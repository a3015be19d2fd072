package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/catalog"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
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
}

func auditCommand(env environment) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use: "audit", Short: "Audit one query against a claim, now", Args: cobra.NoArgs,
		Long: `Replay one query on two neighbouring copies of the data and tell whether it leaks more than is claimed.
Table names that resolve to the schema --from are replaced by --d0 and --d1. Nothing is written; give a role that may
only read these schemas. The report and the messages of errors show values of rows; --values=false withholds them, as the
alerts of dpwatch run do. With several neighbours the report is about the one that shows most, and the error rate is
shared among them. Exit codes: 0 no evidence, 2 violation, 3 inconclusive, 1 fault.`,
		Example: `  dpwatch audit --dsn postgres://replay@localhost/shadow --d0 d0 --d1 d1 --epsilon 0.5 \
      --sql "SELECT anon_count(id, 0.5) FROM users"`,
	}
	fs := cmd.Flags()
	fs.StringVar(&f.dsn, "dsn", "", "connection string of the database with both copies (required)")
	fs.StringArrayVar(&f.engines, "engine", nil, "connection string of an engine beside the database: the trials go through it; repeated, one\nfor D0 and one for each --d1, and the query is sent as it is")
	fs.StringVar(&f.protocol, "protocol", "extended", "how the query is sent: extended, or simple, which has no parameters and is planned\nanew by every trial")
	fs.StringVar(&f.d0, "d0", "", "schema with the data (required)")
	fs.StringSliceVar(&f.d1, "d1", nil, "schema with the data without one privacy unit (required); several, by comma, share the trials on D0")
	fs.StringVar(&f.from, "from", "public", "schema that the query's tables are in")
	fs.StringVar(&f.sql, "sql", "", "the query")
	fs.StringVar(&f.file, "file", "", "file with the query; - for standard input")
	fs.StringArrayVar(&f.params, "param", nil, "value of $1, $2, ... in text form; repeat it")
	fs.StringSliceVar(&f.searchPath, "search-path", []string{"public"}, "schemas where the query's functions are found")
	fs.Float64Var(&f.epsilon, "epsilon", 0, "the claimed epsilon (required)")
	fs.Float64Var(&f.delta, "delta", 0, "the claimed delta")
	fs.Float64Var(&f.confidence, "confidence", 0.95, "one minus the rate of false alarms")
	fs.IntVar(&f.maxTrials, "max-trials", 10_000, "pairs of executions at most")
	fs.DurationVar(&f.timeout, "statement-timeout", 30*time.Second, "a trial that takes longer is an outcome of its own")
	fs.BoolVar(&f.hoist, "hoist", true, "compute once what every trial would compute alike, where the role may make temporary tables")
	values := valuesFlag(cmd)
	asJSON := outputFlag(cmd)
	for _, name := range []string{"dsn", "d0", "d1", "epsilon"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // defined above
		}
	}
	cmd.MarkFlagsOneRequired("sql", "file")
	cmd.MarkFlagsMutuallyExclusive("sql", "file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		js, err := asJSON()
		if err != nil {
			return err
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

func (f auditFlags) query(env environment) (capture.Query, error) {
	sql := f.sql
	if f.file != "" {
		var data []byte
		var err error
		if f.file == "-" {
			data, err = io.ReadAll(io.LimitReader(env.Stdin, maxSQLBytes+1))
		} else {
			data, err = os.ReadFile(f.file)
		}
		if err != nil {
			return capture.Query{}, fmt.Errorf("read the query: %w", err)
		}
		sql = string(data)
	}
	q := capture.Query{SQL: strings.TrimRight(strings.TrimSpace(sql), "; \n\t")}
	for _, p := range f.params {
		q.Protocol = capture.Extended
		q.Params = append(q.Params, capture.Param{Value: []byte(p)})
	}
	return q, nil
}

// auditOnce runs one audit to its verdict or its budget.
func auditOnce(ctx context.Context, env environment, f auditFlags) (conclusion, error) {
	if f.protocol != "extended" && f.protocol != "simple" {
		return conclusion{}, fmt.Errorf("--protocol %q: write extended or simple", f.protocol)
	}
	if n := len(f.engines); n > 1 && n != 1+len(f.d1) {
		return conclusion{}, fmt.Errorf("--engine is given %d times: give one for all worlds, or one for D0 and one for each --d1 (%d)", n, 1+len(f.d1))
	}
	player, err := replay.New(replay.Options{
		DSN: f.dsn, SearchPath: f.searchPath, StatementTimeout: f.timeout, ConnectTimeout: 10 * time.Second,
		MaxRows: 100_000, MaxBytes: 64 << 20, Engines: f.engines, Copies: append([]string{f.d0}, f.d1...), Protocol: replay.Protocol(f.protocol),
		Warn: func(text string) { fmt.Fprintln(env.Stderr, "dpwatch: warning: "+text) },
	})
	if err != nil {
		return conclusion{}, err
	}
	q, err := f.query(env)
	if err != nil {
		return conclusion{}, err
	}
	worlds, err := f.rewrite(ctx, env, player, q)
	if err != nil {
		return conclusion{}, err
	}
	watch, err := newWatch(f, worlds)
	var infeasible *analysis.InfeasibleError
	switch {
	case errors.As(err, &infeasible):
		claim := analysis.Claim{Epsilon: f.epsilon, Delta: f.delta}
		return conclusion{Report: refused(claim, f.confidence, err.Error()), SQL: &audit.SQLPair{D0: worlds[0], D1: worlds[1]}}, nil
	case err != nil:
		return conclusion{}, err
	}
	statement := replay.Statement{Worlds: worlds, Params: q.Params}
	if f.hoist {
		statement.Hoist = replay.NewHoisting(nil)
	}
	run, err := player.Start(statement, rand.Uint64())
	if err != nil {
		return conclusion{}, err
	}
	defer run.Close()
	bar := progress(env.Stderr, f.maxTrials)
	err = gather(ctx, f, worlds, run, watch, bar)
	if differ := statement.Hoist.Disagreed(); differ != nil {
		fmt.Fprintln(env.Stderr, "dpwatch: warning:", differ)
		if watch, err = newWatch(f, worlds); err != nil {
			return conclusion{}, err
		}
		bar.Reset()
		err = gather(ctx, f, worlds, run, watch, bar)
	}
	if err != nil {
		return conclusion{}, err
	}
	_ = bar.Clear()
	found := watch.conclude(f, worlds)
	if statement.Hoist != nil {
		report := statement.Hoist.Report()
		found.Hoisting = &report
	}
	return found, nil
}

// gather collects rounds, and has hoisting verified before a violation is told.
func gather(ctx context.Context, f auditFlags, worlds []string, run *replay.Run, w *watch, bar *progressbar.ProgressBar) error {
	if err := collect(ctx, run, w, bar); err != nil {
		return err
	}
	if w.conclude(f, worlds).Report.Verdict != analysis.Violation {
		return nil
	}
	return run.Verify(ctx)
}

// collect gives rounds to the watch until it has decided.
func collect(ctx context.Context, run *replay.Run, w *watch, bar *progressbar.ProgressBar) error {
	for batch, err := range run.Stream(ctx, auditBatch) {
		if err != nil {
			return err
		}
		for _, round := range batch.Rounds {
			if w.decided() {
				break
			}
			w.add(round)
			_ = bar.Add(1)
		}
		if w.decided() {
			break
		}
	}
	return nil
}

// auditBatch is how many rounds are asked for at a time, at least.
const auditBatch = 25

// rewrite finds which tables have copies in every schema and renames them in the query: one text a world, D0 first.
func (f auditFlags) rewrite(ctx context.Context, env environment, player *replay.Player, q capture.Query) ([]string, error) {
	names, err := player.Tables(ctx, f.d0)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("schema %q holds no table that this role may read: create the copies, or correct --d0", f.d0)
	}
	warnings, err := player.Check(ctx, f.d0, f.d1, names)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		fmt.Fprintln(env.Stderr, "dpwatch: warning: "+w)
	}
	opt := rewrite.Options{SearchPath: []string{f.from}, AllowFunctions: []string{rewrite.AnyFunction}, MaxBytes: maxSQLBytes}
	// A view or a function that reads one world only would make both answers the same, and look private.
	if opt.Shadow, err = catalog.Read(ctx, f.dsn, catalogTimeout); err != nil {
		return nil, err
	}
	schemas := append([]string{f.d0}, f.d1...)
	opt.Neighbours = schemas
	for _, name := range names {
		opt.Protected = append(opt.Protected, rewrite.Table{Schema: f.from, Name: name})
	}
	rewriter, err := rewrite.New(opt)
	if err != nil {
		return nil, err
	}
	plan, err := rewriter.Analyze(q)
	if err != nil {
		return nil, refusal(environment{}, q.SQL, err, false)
	}
	worlds := make([]string, len(schemas))
	for i, schema := range schemas {
		if len(f.engines) > 1 { // each sees its own copy only
			worlds[i] = q.SQL
			continue
		}
		if worlds[i], err = plan.For(schema); err != nil {
			return nil, err
		}
	}
	return worlds, nil
}

// progress is a bar on a terminal and nothing elsewhere.
func progress(w io.Writer, total int) *progressbar.ProgressBar {
	if !interactive(w) {
		return progressbar.DefaultSilent(int64(total))
	}
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("trials"),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
}
