package oneoff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// query reads the query and removes the final semicolon.
func (f *question) query(env setup.Environment) (capture.Query, error) {
	if f.captured != nil {
		return *f.captured, nil
	}
	sql, where := f.SQL, "--sql"
	if f.File != "" {
		where = "--file " + f.File
		in := env.Stdin
		if f.File != "-" {
			file, err := os.Open(f.File)
			if err != nil {
				return capture.Query{}, fmt.Errorf("read the query: %w", err)
			}
			defer file.Close()
			in = file
		}
		data, err := io.ReadAll(io.LimitReader(in, MaxSQLBytes+1))
		if err != nil {
			return capture.Query{}, fmt.Errorf("read the query: %w", err)
		}
		sql = string(data)
	}
	q, err := f.statementOf(sql, where)
	if err != nil {
		return q, err
	}
	for _, p := range f.Params {
		q.Protocol = capture.Extended
		q.Params = append(q.Params, capture.Param{Value: []byte(p)})
	}
	for i, text := range f.Then {
		next, err := f.statementOf(text, placeOf(i))
		if err != nil {
			return q, err
		}
		q.Then = append(q.Then, next.AsStep())
	}
	return q, nil
}

// statementOf returns a statement that was given as text, without the final semicolon. where is the flag that gave it.
func (f *question) statementOf(sql, where string) (capture.Query, error) {
	if len(sql) > MaxSQLBytes {
		return capture.Query{}, fmt.Errorf("%s: the query is longer than %d bytes", where, MaxSQLBytes)
	}
	sql = strings.TrimRight(strings.TrimSpace(strings.TrimPrefix(sql, "\uFEFF")), "; \r\n\t")
	if sql == "" {
		return capture.Query{}, fmt.Errorf("%s is empty: give one SELECT statement", where)
	}
	q := capture.Query{SQL: sql}
	if f.config != nil {
		q.Database = f.config.Privacy.Database
	}
	return q, nil
}

// rewritten are the statements of a question on its copies, and what they claim.
type rewritten struct {
	statement  replay.Statement
	twin       []string        // the texts on the twin; nil = there is none that can be used
	plans      []*rewrite.Plan // of the statements
	sorted     bool            // the query determines the order of its rows
	facts      rewrite.Facts
	claim      rewrite.Claim  // that is tested
	configured *rewrite.Claim // what the configuration claims; nil = nothing
}

// rewrite checks which tables have copies in every schema and rewrites the query, one text per schema, D0 first.
// Without --epsilon, its claim is tested.
func (f *question) rewrite(ctx context.Context, env setup.Environment, player *replay.Player, all capture.Query) (*rewritten, error) {
	opt, err := f.rewriteOptions(ctx, player)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(opt.Protected))
	for i, t := range opt.Protected {
		names[i] = t.Name
	}
	warnings, err := player.Check(ctx, f.D0, f.D1, names)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		fmt.Fprintln(env.Stderr, "dpwatch: warning: "+w)
	}
	rewriter, err := rewrite.New(opt)
	if err != nil {
		return nil, err
	}
	q := all.Step(0)
	plan, err := f.analyze(ctx, rewriter, player, q)
	if err != nil {
		var refused *rewrite.UnsupportedError
		if errors.As(err, &refused) && refused.Reason == reasons.Parameter && len(f.Params) == 0 {
			refused.Hint = "give the value of $1 with --param VALUE; repeat --param for $2, $3, ..."
		}
		return nil, Refusal(q.SQL, err)
	}
	r := &rewritten{plans: []*rewrite.Plan{plan}, sorted: plan.Sorted, facts: plan.Facts, configured: plan.Claim}
	if r.claim, err = f.claimOf(plan); err != nil {
		return nil, err
	}
	s := &r.statement
	s.Params, s.Beside = q.Params, plan.Beside
	if f.captured != nil {
		s.Simple, s.Named = q.Protocol == capture.Simple, q.Named
	}
	if f.config != nil {
		s.Settings = plan.Settings
	}
	if f.config != nil || len(f.Engines) == 0 {
		s.SearchPath = plan.SearchPath
	}
	if f.Hoist && len(all.Then) == 0 {
		var noise []string
		if f.config != nil {
			noise = stages.NoiseFunctions(*f.config)
		}
		s.Hoist = replay.NewHoisting(noise)
	}
	if err := r.sequence(f, all, func(next capture.Query) (*rewrite.Plan, error) { return f.analyze(ctx, rewriter, player, next) }); err != nil {
		return nil, err
	}
	w, err := onSchemas(r.statement, r.plans, f.withTwin(), len(f.schemas()), len(f.Engines) > 1)
	r.statement, r.twin = w.Statement, w.Twin
	return r, err
}

// claimed returns the claim that is tested.
func (r *rewritten) claimed() analysis.Claim {
	return analysis.CurveClaim(r.claim.Curve, r.claim.Epsilon, r.claim.Delta)
}

// analyze analyzes a statement. Where there is a configuration, the shadow database and the engine answer questions
// about its claim.
func (f *question) analyze(ctx context.Context, rewriter *rewrite.Rewriter, player *replay.Player, q capture.Query) (*rewrite.Plan, error) {
	if f.config == nil {
		return rewriter.Analyze(q)
	}
	return recognize.Analyze(ctx, rewriter, q, stages.Evaluate(*f.config, player))
}

// rewriteOptions returns the options of dpwatch run if there is a configuration. Without one, or with --from, every
// table with a copy in D0 is protected and every function is allowed.
func (f *question) rewriteOptions(ctx context.Context, player *replay.Player) (opt rewrite.Options, err error) {
	if f.config != nil && !f.Given["from"] {
		opt = stages.RewriteOptions(*f.config)
		opt.Claims.Ask = opt.Claims.Ask && !f.Given["epsilon"]
		if opt.ShadowPath = nil; len(f.Engines) == 0 {
			opt.ShadowPath = f.SearchPath
		}
		if dsn := f.config.Privacy.Catalog; dsn != "" {
			if opt.Source, err = read.Catalog(ctx, dsn.Reveal(), stages.CatalogTimeout); err != nil {
				return opt, fmt.Errorf("privacy.catalog: %w", err)
			}
		}
	} else {
		names, err := player.Tables(ctx, f.D0)
		if err != nil {
			return opt, err
		}
		if len(names) == 0 {
			return opt, player.NoTables(ctx, f.D0)
		}
		opt = rewrite.Options{SearchPath: append([]string{f.From}, f.SearchPath...), AllowFunctions: []string{rewrite.AnyFunction}}
		for _, name := range names {
			opt.Protected = append(opt.Protected, rewrite.Table{Schema: f.From, Name: name})
		}
	}
	opt.MaxBytes, opt.OwnEngines = MaxSQLBytes, len(f.Engines) > 1
	// The catalog shows views and functions that read the same copy in every world: they would make a query that leaks
	// look private.
	opt.Shadow, err = read.Catalog(ctx, f.DSN, stages.CatalogTimeout)
	opt.Neighbours = stages.WithTwin(f.schemas(), opt.Shadow, f.Twin)
	return opt, err
}

// claimOf returns the claim that is tested: the query's configured one, unless --epsilon is given.
func (f *question) claimOf(plan *rewrite.Plan) (rewrite.Claim, error) {
	given := rewrite.Claim{Epsilon: f.Epsilon, Delta: f.Delta, Curve: f.Curve, Source: "flag"}
	if f.Given["epsilon"] {
		return given, nil
	}
	if plan.Claim == nil {
		return given, errors.New("the configuration has no claim for this query: give --epsilon, or add the query's function to claims.functions, a rule to claims.rules, or claims.default")
	}
	given.Epsilon, given.Source = plan.Claim.Epsilon, plan.Claim.Source
	if !f.Given["delta"] {
		given.Delta, given.Curve = plan.Claim.Delta, plan.Claim.Curve
	} else if plan.Claim.Curve != "" {
		return given, fmt.Errorf("--delta is given, and the query claims the curve %s: give --epsilon as well, or leave out --delta", plan.Claim.Curve)
	}
	return given, nil
}
