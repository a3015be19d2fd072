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
	dsn, d0, d1, from, sql, file string
	searchPath, params           []string
	epsilon, delta, confidence   float64
	maxTrials                    int
	timeout                      time.Duration
}

func auditCommand(env environment) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use: "audit", Short: "Audit one query against a claim, now", Args: cobra.NoArgs,
		Long: `Replay one query on two neighbouring copies of the data and tell whether it leaks more than is claimed.
Table names that resolve to the schema --from are replaced by --d0 and --d1. Nothing is written; give a role that may
only read the two schemas. Exit codes: 0 no evidence, 2 violation, 3 inconclusive, 1 fault.`,
		Example: `  dpwatch audit --dsn postgres://replay@localhost/shadow --d0 d0 --d1 d1 --epsilon 0.5 \
      --sql "SELECT anon_count(id, 0.5) FROM users"`,
	}
	fs := cmd.Flags()
	fs.StringVar(&f.dsn, "dsn", "", "connection string of the database with both copies (required)")
	fs.StringVar(&f.d0, "d0", "", "schema with the data (required)")
	fs.StringVar(&f.d1, "d1", "", "schema with the data without one privacy unit (required)")
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
		r, pair, err := auditOnce(cmd.Context(), env, f)
		if err != nil {
			return err
		}
		return conclude(env, r, &pair, js)
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
func auditOnce(ctx context.Context, env environment, f auditFlags) (analysis.Report, audit.SQLPair, error) {
	var pair audit.SQLPair
	player, err := replay.New(replay.Options{
		DSN: f.dsn, SearchPath: f.searchPath, StatementTimeout: f.timeout, ConnectTimeout: 10 * time.Second,
		MaxRows: 100_000, MaxBytes: 64 << 20, SessionTrials: turnTrials,
	})
	if err != nil {
		return analysis.Report{}, pair, err
	}
	q, err := f.query(env)
	if err != nil {
		return analysis.Report{}, pair, err
	}
	if pair, err = f.rewrite(ctx, player, q); err != nil {
		return analysis.Report{}, pair, err
	}
	claim := analysis.Claim{Epsilon: f.epsilon, Delta: f.delta}
	a, err := analysis.New(claim, analysis.Options{Confidence: f.confidence, MaxTrials: f.maxTrials})
	var infeasible *analysis.InfeasibleError
	switch {
	case errors.As(err, &infeasible):
		return refused(claim, f.confidence, err.Error()), pair, nil
	case err != nil:
		return analysis.Report{}, pair, err
	}
	run, err := player.Start(replay.Statement{D0: pair.D0, D1: pair.D1, Params: q.Params}, rand.Uint64())
	if err != nil {
		return analysis.Report{}, pair, err
	}
	defer run.Close()
	bar := progress(env.Stderr, f.maxTrials)
	for !a.Decided() {
		pairs, err := run.Pairs(ctx, auditBatch)
		if err != nil {
			return analysis.Report{}, pair, err
		}
		for _, p := range pairs {
			if a.Decided() {
				break
			}
			a.Add(p.D0, p.D1)
			_ = bar.Add(1)
		}
	}
	_ = bar.Clear()
	r := a.Report()
	r.Claimed.Source = "flag"
	return r, pair, nil
}

// auditBatch is how many pairs are asked for at a time.
const auditBatch = 25

// rewrite finds which tables have copies in both schemas and renames them in the query.
func (f auditFlags) rewrite(ctx context.Context, player *replay.Player, q capture.Query) (audit.SQLPair, error) {
	var pair audit.SQLPair
	names, err := player.Tables(ctx, f.d0)
	if err != nil {
		return pair, err
	}
	if len(names) == 0 {
		return pair, fmt.Errorf("schema %q holds no table that this role may read: create the copies, or correct --d0", f.d0)
	}
	if _, err := player.Check(ctx, f.d0, []string{f.d1}, names); err != nil {
		return pair, err
	}
	opt := rewrite.Options{SearchPath: []string{f.from}, AllowFunctions: []string{rewrite.AnyFunction}, MaxBytes: maxSQLBytes}
	// A view or a function that reads one world only would make both answers the same, and look private.
	if opt.Shadow, err = catalog.Read(ctx, f.dsn, catalogTimeout); err != nil {
		return pair, err
	}
	opt.Neighbours = []string{f.d0, f.d1}
	for _, name := range names {
		opt.Protected = append(opt.Protected, rewrite.Table{Schema: f.from, Name: name})
	}
	rewriter, err := rewrite.New(opt)
	if err != nil {
		return pair, err
	}
	plan, err := rewriter.Analyze(q)
	if err != nil {
		return pair, refusal(environment{}, q.SQL, err, false)
	}
	if pair.D0, err = plan.For(f.d0); err != nil {
		return pair, err
	}
	pair.D1, err = plan.For(f.d1)
	return pair, err
}

// progress is a bar on a terminal and nothing elsewhere.
func progress(w io.Writer, total int) *progressbar.ProgressBar {
	if !interactive(w) {
		return progressbar.DefaultSilent(int64(total))
	}
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("trials"),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
}
