package oneoff

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/trial"
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
	c, err := f.run(ctx, env, trial.Replays(player), copies, statement, progress)
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
func (f *Options) run(ctx context.Context, env setup.Environment, player trial.Player, copies *trial.Copies, statement replay.Statement, progress Progress) (read.Conclusion, error) {
	once := trial.Once{
		Unlike: f.unlike(ctx, env, statement),
		Worlds: trial.Worlds{Player: player, Statement: statement, Twin: f.twin}, Copies: copies, VaryText: f.VaryText, Measure: f.Measure,
		Claim: f.claimed(), Analysis: f.analysisOptions(),
		Begin:       func() { progress.Begin("trials", f.MaxTrials) },
		Controlling: func() { progress.Begin("controlling", f.MaxTrials) },
		Confirming:  func() { progress.Begin("confirming", f.MaxTrials) },
		Measuring: func(failed error) {
			if failed != nil {
				fmt.Fprintln(env.Stderr, "dpwatch: warning: the violation is not measured:", failed)
				return
			}
			progress.Begin("measuring", f.Measure)
		},
		Progress: progress.Add,
	}
	if f.renewable() {
		r := &renewal{options: f, env: env, statement: statement}
		defer r.close(ctx)
		once.Renew = r.make
	}
	var reads *read.Reads
	once.Read = func(r *replay.Reads, places []int) { reads = f.reads(reads, r, places) }
	shown, err := once.Run(ctx)
	progress.End()
	switch {
	case trial.Unjudgeable(err):
		return f.unjudged(err, statement), nil
	case err != nil:
		return read.Conclusion{}, err
	}
	c := f.conclude(shown, statement)
	c.Reads = reads
	if f.Timing > 0 {
		progress.Begin("latencies", f.Timing)
		r, err := once.Time(ctx, 1+slices.Index(f.D1, c.Neighbour), f.Timing)
		progress.End()
		switch {
		case trial.Unjudgeable(err) && c.Verdict != analysis.Violation: // which stays one
			return f.unjudged(err, statement), nil
		case err != nil:
			c.Warnings = append(c.Warnings, withheld.Public("the latencies were not compared: "+err.Error()))
		default:
			c.Timing = &r
		}
	}
	return c, nil
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

// unjudged reports that a statement cannot be judged, as trial.Unjudgeable says of an error.
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
func (f *Options) prepare(ctx context.Context, env setup.Environment, watch bool) (player *replay.Player, copies *trial.Copies, s replay.Statement, err error) {
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
		if copies, err = trial.WatchCopies(ctx, player, watched); err != nil {
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
