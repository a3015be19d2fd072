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
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/withheld"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Progress shows the progress of an audit. Begin starts a new count.
type Progress struct {
	Begin func(what string, total int)
	Add   func(n int)
	End   func()
}

// Audit audits one query, from its first trial to its verdict.
func Audit(ctx context.Context, env setup.Environment, o Options, progress Progress) (read.Conclusion, error) {
	f, err := o.load(env)
	if err != nil {
		return read.Conclusion{}, err
	}
	c, _, err := f.audit(ctx, env, progress)
	return c, err
}

// AuditCaptured is Audit of a captured query. It also returns what the configuration claims for it, nil = nothing.
func AuditCaptured(ctx context.Context, env setup.Environment, c *config.Config, q *capture.Query, o Options, progress Progress) (read.Conclusion, *rewrite.Claim, error) {
	f, err := o.about(c, q)
	if err != nil {
		return read.Conclusion{}, nil, err
	}
	return f.audit(ctx, env, progress)
}

// Texts returns the texts that are replayed for a captured query on D0 and a neighbour.
func Texts(ctx context.Context, env setup.Environment, c *config.Config, q *capture.Query, neighbour string) (*read.SQLPair, error) {
	f, err := Options{Given: map[string]bool{"sql": true, "epsilon": true, "hoist": true}}.about(c, q)
	if err != nil {
		return nil, err
	}
	player, err := replay.New(f.replayOptions())
	if err != nil {
		return nil, err
	}
	r, err := f.rewrite(ctx, env, player, *q)
	if err != nil {
		return nil, err
	}
	world := 1 + max(0, slices.Index(f.D1, neighbour))
	return &read.SQLPair{D0: r.statement.Text(0), D1: r.statement.Text(world)}, nil
}

// audit is the audit of a question.
type audit struct {
	question
	*rewritten
	env      setup.Environment
	progress Progress
	player   step.Player
	copies   *step.Copies // nil = they are not replaced
}

func (f question) audit(ctx context.Context, env setup.Environment, progress Progress) (c read.Conclusion, configured *rewrite.Claim, err error) {
	if f.Recreate {
		return f.auditAnew(ctx, env, progress)
	}
	a, err := f.prepare(ctx, env, progress, true)
	if err != nil {
		return c, nil, err
	}
	if c, err = a.run(ctx); err == nil && f.Shrink {
		c = a.shrunk(ctx, c)
	}
	return c, a.configured, err
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

// run runs trials until the audit is decided.
func (f *audit) run(ctx context.Context) (read.Conclusion, error) {
	alone := step.Alone{
		Copies: f.copies, Played: func(b replay.Batch) { f.progress.Add(len(b.Rounds)) },
		Begin: func(what string, measuring bool) {
			total := f.MaxTrials
			if measuring {
				total = f.Measure
			}
			f.progress.Begin(what, total)
		},
	}
	if f.renewable() {
		r := &renewal{audit: f}
		defer r.close(ctx)
		alone.Renew = r.make
	}
	a, found, err := f.decide(ctx, &alone)
	f.progress.End()
	switch {
	case step.Unjudgeable(err):
		return f.unjudged(err), nil
	case err != nil:
		return read.Conclusion{}, err
	}
	c := f.conclude(a.Evidence)
	for _, one := range found {
		if one.Kind == step.Read {
			c.Reads = f.reads(c.Reads, one.Reads, one.Places)
		}
	}
	if f.Timing > 0 {
		f.progress.Begin("latencies", f.Timing)
		r, err := f.latencies(ctx, 1+slices.Index(f.D1, c.Neighbour))
		err = f.copies.Explain(ctx, err)
		f.progress.End()
		switch {
		case step.Unjudgeable(err) && c.Verdict != analysis.Violation: // which stays one
			return f.unjudged(err), nil
		case err != nil:
			c.Warnings = append(c.Warnings, withheld.Public("the latencies were not compared: "+err.Error()))
		default:
			c.Timing = &r
		}
	}
	return c, nil
}

// decide runs the steps of the audit, with that which measures a violation.
func (f *audit) decide(ctx context.Context, alone *step.Alone) (a step.Audit, found []step.Finding, err error) {
	a = step.Audit{Statement: f.statement, Twin: f.twin, Hoist: f.statement.Hoist, VaryText: f.VaryText}
	if a.Evidence, err = step.Evidence(f.claimed(), f.analysisOptions(), f.statement); err != nil {
		return a, nil, err
	}
	a.Evidence.SetUnlike(f.unlike(ctx))
	if a, found, err = alone.Decide(ctx, f.player, a); err != nil || f.Measure == 0 || !a.Evidence.Found() {
		return a, found, err
	}
	a.Measure = f.Measure
	measured, _, err := alone.Step(ctx, f.player, a)
	if err != nil {
		fmt.Fprintln(f.env.Stderr, "dpwatch: warning: the violation is not measured:", err)
	}
	return measured, found, nil
}

// latencies compares those of the query on D0 and on a neighbour, by its number from 1.
func (f *audit) latencies(ctx context.Context, neighbour int) (timing.Report, error) {
	s := f.statement
	s.Hoist = nil
	run, err := f.player.Start(s, rand.Uint64())
	if err != nil {
		return timing.Report{}, err
	}
	defer run.Close()
	var compared timing.Comparison
	err = run.Time(ctx, neighbour, func(d0, d1 time.Duration) bool {
		compared.Add(d0, d1)
		f.progress.Add(1)
		return compared.Pairs() < f.Timing
	})
	return compared.Report(f.Confidence), err
}

// unlike returns how the shadow database differs from production, if there is a configuration that names production's.
func (f *audit) unlike(ctx context.Context) string {
	if f.config == nil {
		return ""
	}
	c, user := *f.config, ""
	c.Shadow.DSN = config.Secret(f.DSN)
	if f.captured != nil {
		user = f.captured.User
	}
	how, err := stages.Unlike(ctx, c, user, f.statement.Settings)
	if err != nil {
		fmt.Fprintln(f.env.Stderr, "dpwatch: warning: the shadow database is not compared with production:", err)
	}
	return strings.Join(how, ", ")
}

// unjudged reports that the query cannot be judged, as step.Unjudgeable says of an error.
func (f *audit) unjudged(err error) read.Conclusion {
	report := refused(f.claimed(), f.Confidence, err.Error())
	report.Claimed.Source = f.claim.Source
	if ends := (*replay.EndsError)(nil); errors.As(err, &ends) {
		report.Event = analysis.EndsEvent(&ends.Ends)
	}
	c := read.Conclusion{Report: report, Queries: f.queries(), SQL: &read.SQLPair{D0: f.statement.Text(0), D1: f.statement.Text(1)}}
	c.Key, c.Summary = identity(f.plans)
	return c
}

// reads adds what trials read, by the schema of the copies. places are those of the worlds among the copies and the
// twin; nil = the worlds are the copies.
func (f *audit) reads(shown *read.Reads, r *replay.Reads, places []int) *read.Reads {
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
func (f question) prepare(ctx context.Context, env setup.Environment, progress Progress, watch bool) (*audit, error) {
	options := f.replayOptions()
	options.Warn = func(text string) { fmt.Fprintln(env.Stderr, "dpwatch: warning: "+text) }
	player, err := replay.New(options)
	if err != nil {
		return nil, err
	}
	q, err := f.query(env)
	if err != nil {
		return nil, err
	}
	fault, _, err := player.TwinFault(ctx, f.D0) // Check prints it
	if err != nil {
		return nil, err
	}
	a := &audit{question: f, env: env, progress: progress, player: step.Replays(player)}
	if watch {
		watched := f.withTwin()
		if fault != "" {
			watched = f.schemas()
		}
		if a.copies, err = step.WatchCopies(ctx, player, watched); err != nil {
			return nil, err
		}
	}
	if a.rewritten, err = f.rewrite(ctx, env, player, q); err != nil {
		return nil, a.copies.Explain(ctx, err)
	}
	if fault != "" {
		a.twin = nil
	}
	a.MaxTrials = a.analysisOptions().For(a.claimed()).MaxTrials
	return a, a.copies.Explain(ctx, nil)
}

func (f *audit) analysisOptions() analysis.Options {
	return analysis.Options{
		Confidence: f.Confidence, MaxTrials: f.MaxTrials, Deterministic: analysis.DeterministicPolicy(f.Deterministic),
		FloatingPoint: analysis.FloatingPointPolicy(f.FloatingPoint), Unordered: !f.sorted, Query: analysis.Query(f.facts),
	}
}

// conclude reports on the neighbour with the strongest evidence, and writes its plots into Plot.
func (f *audit) conclude(shown *evidence.Evidence) read.Conclusion {
	var c read.Conclusion
	c.Key, c.Summary = identity(f.plans)
	s := &f.statement
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
	c.Claimed.Source = f.claim.Source
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
