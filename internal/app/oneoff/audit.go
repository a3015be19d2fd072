package oneoff

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/timing"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/withheld"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Options are the flags of dpwatch audit; the fields are named after them.
type Options struct {
	DSN, D0, From, SQL, File   string
	Twin                       string // schema of a second copy of D0; "" = there is none
	Protocol                   string
	Engines                    []string
	D1, SearchPath, Params     []string
	Then                       []string // statements after SQL in the same session; --sql gives them all
	Composition                string   // "max" or "sum"; of the claims of SQL and Then
	Epsilon, Delta, Confidence float64
	Curve                      curve.Curve // instead of Epsilon and Delta, which are its headline; "" = none
	MaxTrials                  int         // 0 = by the claim
	Timeout                    time.Duration
	Hoist                      bool
	Config, Plot               string
	EngineName                 string // of several engines of Config
	Deterministic              string
	FloatingPoint              string
	VaryText                   bool
	Measure                    int
	Timing                     int
	Recreate                   bool
	Shrink                     bool
	ShowRows                   bool            // Shrink may show the rows of small copies
	Issue                      bool            // keep what an issue for the maintainers of the engine shows
	Given                      map[string]bool // flags on the command line; they override Config

	// Values that do not come from flags alone.
	Loaded *config.Config // parsed from Config; nil = none
	source string         // source of the claim
	sorted bool           // the query determines the order of its rows
	facts  rewrite.Facts  // of the queries

	Captured  *capture.Query  // replayed instead of SQL or File; nil = none
	plans     []*rewrite.Plan // of the statements
	twin      []string        // the texts of the statements on the twin; nil = there is none that can be used
	following []capture.Step  // statements after the first one
	Claimed   *rewrite.Claim  // what the configuration claims for the query; nil = nothing
}

// Progress shows the progress of an audit. Begin starts a new count.
type Progress struct {
	Begin func(what string, total int)
	Add   func(n int)
	End   func()
}

// Audit audits one query, from its first trial to its verdict.
func Audit(ctx context.Context, env setup.Environment, f *Options, progress Progress) (read.Conclusion, error) {
	if err := f.Resolve(env); err != nil {
		return read.Conclusion{}, err
	}
	c, err := f.audit(ctx, env, progress)
	c.Key, c.Summary = identity(f.plans)
	return c, err
}

func (f *Options) audit(ctx context.Context, env setup.Environment, progress Progress) (read.Conclusion, error) {
	if f.Recreate {
		return f.auditAnew(ctx, env, progress)
	}
	player, copies, statement, err := f.prepare(ctx, env, true)
	if err != nil {
		return read.Conclusion{}, err
	}
	c, err := f.run(ctx, env, step.Replays(player), copies, statement, progress)
	if err != nil || !f.Shrink {
		return c, err
	}
	return f.shrunk(ctx, env, c, statement, progress), nil
}

// identity returns the key and the summary of statements that are audited together.
func identity(plans []*rewrite.Plan) (key, summary string) {
	var keys, summaries []string
	for _, p := range plans {
		keys, summaries = append(keys, p.Key), append(summaries, p.Summary)
	}
	key = strings.Join(keys, " ")
	if len(keys) > 1 {
		sum := sha256.Sum256([]byte(key))
		key = hex.EncodeToString(sum[:])
	}
	return key, strings.Join(summaries, "; then ")
}

// run runs the trials of a statement until it is decided.
func (f *Options) run(ctx context.Context, env setup.Environment, player step.Player, copies *step.Copies, statement replay.Statement, progress Progress) (read.Conclusion, error) {
	alone := step.Alone{Copies: copies, Add: progress.Add, Begin: func(what string, measuring bool) {
		total := f.MaxTrials
		if measuring {
			total = f.Measure
		}
		progress.Begin(what, total)
	}}
	if f.renewable() {
		r := &renewal{options: f, env: env, statement: statement}
		defer r.close(ctx)
		alone.Renew = r.make
	}
	a, found, err := f.decide(ctx, env, player, &alone, statement)
	progress.End()
	switch {
	case step.Unjudgeable(err):
		return f.unjudged(err, statement), nil
	case err != nil:
		return read.Conclusion{}, err
	}
	c := f.conclude(a.Evidence, statement)
	for _, one := range found {
		if one.Kind == step.Read {
			c.Reads = f.reads(c.Reads, one.Reads, one.Places)
		}
	}
	if f.Timing > 0 {
		progress.Begin("latencies", f.Timing)
		r, err := f.latencies(ctx, player, statement, 1+slices.Index(f.D1, c.Neighbour), progress)
		err = copies.Explain(ctx, err)
		progress.End()
		switch {
		case step.Unjudgeable(err) && c.Verdict != analysis.Violation: // which stays one
			return f.unjudged(err, statement), nil
		case err != nil:
			c.Warnings = append(c.Warnings, withheld.Public("the latencies were not compared: "+err.Error()))
		default:
			c.Timing = &r
		}
	}
	return c, nil
}

// decide runs the steps of a statement's audit, with that which measures a violation.
func (f *Options) decide(ctx context.Context, env setup.Environment, player step.Player, alone *step.Alone, s replay.Statement) (a step.Audit, found []step.Finding, err error) {
	a = step.Audit{Statement: s, Twin: f.twin, Hoist: s.Hoist, VaryText: f.VaryText}
	if a.Evidence, err = step.Evidence(f.claimed(), f.analysisOptions(), s); err != nil {
		return a, nil, err
	}
	a.Evidence.SetUnlike(f.unlike(ctx, env, s))
	if a, found, err = alone.Decide(ctx, player, a); err != nil || f.Measure == 0 || !a.Evidence.Found() {
		return a, found, err
	}
	a.Measure = f.Measure
	measured, _, err := alone.Step(ctx, player, a)
	if err != nil {
		fmt.Fprintln(env.Stderr, "dpwatch: warning: the violation is not measured:", err)
	}
	return measured, found, nil
}

// latencies compares those of a statement on D0 and on a neighbour, by its number from 1.
func (f *Options) latencies(ctx context.Context, player step.Player, s replay.Statement, neighbour int, progress Progress) (timing.Report, error) {
	s.Hoist = nil
	run, err := player.Start(s, rand.Uint64())
	if err != nil {
		return timing.Report{}, err
	}
	defer run.Close()
	var compared timing.Comparison
	err = run.Time(ctx, neighbour, func(d0, d1 time.Duration) bool {
		compared.Add(d0, d1)
		progress.Add(1)
		return compared.Pairs() < f.Timing
	})
	return compared.Report(f.Confidence), err
}

// unlike returns how the shadow database differs from production, if there is a configuration that names production's.
func (f *Options) unlike(ctx context.Context, env setup.Environment, s replay.Statement) string {
	if f.Loaded == nil {
		return ""
	}
	c, user := *f.Loaded, ""
	c.Shadow.DSN = config.Secret(f.DSN)
	if f.Captured != nil {
		user = f.Captured.User
	}
	how, err := stages.Unlike(ctx, c, user, s.Settings)
	if err != nil {
		fmt.Fprintln(env.Stderr, "dpwatch: warning: the shadow database is not compared with production:", err)
	}
	return strings.Join(how, ", ")
}

// unjudged reports that a statement cannot be judged, as step.Unjudgeable says of an error.
func (f *Options) unjudged(err error, s replay.Statement) read.Conclusion {
	report := refused(f.claimed(), f.Confidence, err.Error())
	report.Claimed.Source = f.source
	if ends := (*replay.EndsError)(nil); errors.As(err, &ends) {
		report.Event = analysis.EndsEvent(&ends.Ends)
	}
	return read.Conclusion{Report: report, Queries: f.queries(), SQL: &read.SQLPair{D0: s.Text(0), D1: s.Text(1)}}
}

// reads adds what trials read, by the schema of the copies. places are those of the worlds among the copies and the
// twin; nil = the worlds are the copies.
func (f *Options) reads(shown *read.Reads, r *replay.Reads, places []int) *read.Reads {
	if shown == nil {
		shown = &read.Reads{Tables: map[string][]string{}, Unverified: r.Unverified, Beside: r.Beside}
	}
	schemas := f.withTwin()
	for i, tables := range r.Tables {
		if places != nil {
			i = places[i]
		}
		shown.Tables[schemas[i]] = tables
	}
	return shown
}

// prepare connects, and rewrites the query for all copies, whose rows are read if they are to be watched.
func (f *Options) prepare(ctx context.Context, env setup.Environment, watch bool) (player *replay.Player, copies *step.Copies, s replay.Statement, err error) {
	options := f.ReplayOptions()
	options.Warn = func(text string) { fmt.Fprintln(env.Stderr, "dpwatch: warning: "+text) }
	if player, err = replay.New(options); err != nil {
		return nil, nil, s, err
	}
	q, err := f.query(env)
	if err != nil {
		return nil, nil, s, err
	}
	fault, _, err := player.TwinFault(ctx, f.D0) // Check prints it
	if err != nil {
		return nil, nil, s, err
	}
	if watch {
		watched := f.withTwin()
		if fault != "" {
			watched = f.schemas()
		}
		if copies, err = step.WatchCopies(ctx, player, watched); err != nil {
			return nil, nil, s, err
		}
	}
	if s, err = f.Rewrite(ctx, env, player, q); fault != "" {
		f.twin = nil
	}
	f.MaxTrials = f.analysisOptions().For(f.claimed()).MaxTrials
	return player, copies, s, copies.Explain(ctx, err)
}

// claimed returns the claim that is tested.
func (f *Options) claimed() analysis.Claim { return analysis.CurveClaim(f.Curve, f.Epsilon, f.Delta) }

func (f *Options) analysisOptions() analysis.Options {
	return analysis.Options{
		Confidence: f.Confidence, MaxTrials: f.MaxTrials, Deterministic: analysis.DeterministicPolicy(f.Deterministic),
		FloatingPoint: analysis.FloatingPointPolicy(f.FloatingPoint), Unordered: !f.sorted, Query: analysis.Query(f.facts),
	}
}

// conclude reports on the neighbour with the strongest evidence, and writes its plots into Plot.
func (f *Options) conclude(shown *evidence.Evidence, s replay.Statement) read.Conclusion {
	var c read.Conclusion
	worst, reports := shown.Worst()
	for i, r := range reports {
		c.Neighbours = append(c.Neighbours, read.Neighbour{Schema: f.D1[i], Verdict: r.Verdict, Lower: r.EpsilonLower, Estimate: r.EpsilonEstimate})
	}
	c.Report, c.Neighbour, c.OpeningTrials = reports[worst], f.D1[worst], shown.OpeningTrials(worst)
	for i, r := range reports {
		if i != worst && r.ReasonCode == analysis.Vacuous {
			c.Warnings = append(c.Warnings, withheld.Public(fmt.Sprintf("%s had no trials: %s", f.D1[i], r.Reason)))
		}
	}
	shown.Audit(worst).AddProfile(&c.Report)
	c.Claimed.Source = f.source
	if c.Recreated = &f.Recreate; f.Recreate {
		c.Control = nil // the draws of copies are part of the trials
	}
	c.SQL, c.Queries = &read.SQLPair{D0: s.Text(0), D1: s.Text(worst + 1)}, f.queries()
	if s.Hoist != nil {
		report := shown.Hoisting(s.Hoist.Report(), worst)
		c.Hoisting = &report
	}
	if f.Issue && c.Verdict == analysis.Violation {
		figures := shown.Audit(worst).Figures()
		c.Issue = f.issue(c, read.NewCharts(&figures, true))
	}
	if f.Plot != "" {
		_, err := plot.Write(f.Plot, shown.Audit(worst).Figures(), c.Report)
		c.Warnings = unwritten(c.Warnings, err)
	}
	return c
}
