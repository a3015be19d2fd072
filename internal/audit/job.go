package audit

import (
	"context"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// job is one audit: one plan against every neighbour. The fields of a turn belong to the worker that has the job;
// the others are guarded by Auditor.mu.
type job struct {
	id        string
	plan      *rewrite.Plan
	query     capture.Query
	seen      uint64
	firstSeen time.Time
	lastSeen  time.Time
	state     State
	trouble   string
	notBefore time.Time
	reports   []analysis.Report // one a neighbour, as of the last batch

	worlds []world // of the turn
}

// world is one neighbour of D0.
type world struct {
	schema string
	sql    SQLPair
	audit  *analysis.Audit
	told   bool // its violation was reported
}

// newJob lays out an audit; one that cannot be judged is born decided, with its trouble told.
func (a *Auditor) newJob(q capture.Query, plan *rewrite.Plan) *job {
	j := &job{
		id: plan.Key[:min(12, len(plan.Key))], plan: plan, query: q, seen: 1,
		firstSeen: q.Completed, lastSeen: q.Completed, state: Queued,
	}
	d0, err := plan.For(a.opt.D0)
	if err != nil {
		a.condemn(j, err)
		return j
	}
	claim, opt := a.terms(plan)
	for _, schema := range a.opt.D1 {
		w := world{schema: schema, sql: SQLPair{D0: d0}}
		if w.sql.D1, err = plan.For(schema); err == nil {
			w.audit, err = analysis.New(claim, opt)
		}
		if err != nil {
			a.condemn(j, err)
			return j
		}
		j.worlds = append(j.worlds, w)
		j.reports = append(j.reports, report(w.audit, plan))
	}
	return j
}

// terms returns the claim and the options for one neighbour: the error rate is shared among all of them.
func (a *Auditor) terms(plan *rewrite.Plan) (analysis.Claim, analysis.Options) {
	opt := a.opt.Analysis
	opt.Confidence = 1 - (1-opt.Confidence)/float64(len(a.opt.D1))
	if plan.Claim == nil {
		opt.NoClaim = true
		opt.MaxTrials = min(opt.MaxTrials, noClaimTrials)
		return analysis.Claim{}, opt
	}
	return analysis.Claim{Epsilon: plan.Claim.Epsilon, Delta: plan.Claim.Delta}, opt
}

// condemn ends a job that cannot be judged.
func (a *Auditor) condemn(j *job, err error) {
	j.state, j.trouble, j.worlds = Decided, err.Error(), nil
	claim := analysis.Claim{Epsilon: math.NaN()}
	source := ""
	if c := j.plan.Claim; c != nil {
		claim, source = analysis.Claim{Epsilon: c.Epsilon, Delta: c.Delta}, c.Source
	}
	r := analysis.Refused(claim, a.opt.Analysis.Confidence, err.Error())
	r.Claimed.Source = source
	j.reports = []analysis.Report{r}
	a.metrics.verdicts.WithLabelValues(string(analysis.Inconclusive)).Inc()
}

func report(audit *analysis.Audit, plan *rewrite.Plan) analysis.Report {
	r := audit.Report()
	if plan.Claim != nil {
		r.Claimed.Source = plan.Claim.Source
	}
	return r
}

// turn runs a job until it is decided, its share of trials is used, it cannot be replayed, or ctx ends.
func (a *Auditor) turn(ctx context.Context, j *job) {
	defer func() {
		if r := recover(); r != nil {
			a.recovered("audit "+j.id, r)
			a.mu.Lock()
			a.condemn(j, errors.New("internal error: see the log"))
			a.mu.Unlock()
		}
	}()
	decided := true
	for i := range j.worlds {
		done, err := a.turnWorld(ctx, j, i)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.postpone(j, err)
			return
		}
		decided = decided && done
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	j.trouble = ""
	if decided {
		j.state = Decided
		a.metrics.verdicts.WithLabelValues(string(j.worst().Verdict)).Inc()
		return
	}
	j.state = Queued
	a.enqueue(j)
}

func (a *Auditor) turnWorld(ctx context.Context, j *job, i int) (done bool, err error) {
	w := &j.worlds[i]
	if w.audit.Decided() {
		return true, nil
	}
	run, err := a.opt.Player.Start(replay.Statement{
		D0: w.sql.D0, D1: w.sql.D1, Params: j.query.Params, Settings: j.plan.Settings, SearchPath: j.plan.SearchPath,
	}, a.opt.Seed())
	if err != nil {
		return false, err
	}
	defer run.Close()
	for n := 0; n < a.opt.TurnTrials && !w.audit.Decided(); n += a.opt.BatchTrials {
		began := a.opt.Now()
		pairs, err := run.Pairs(ctx, a.opt.BatchTrials)
		if err != nil {
			return false, err
		}
		a.metrics.batch(pairs, a.opt.Now().Sub(began))
		for _, p := range pairs {
			if w.audit.Decided() {
				break
			}
			w.audit.Add(p.D0, p.D1)
		}
		a.publish(j, i)
	}
	return w.audit.Decided(), nil
}

// publish makes a world's latest report visible and tells its violation once.
func (a *Auditor) publish(j *job, i int) {
	w := &j.worlds[i]
	r := report(w.audit, j.plan)
	a.mu.Lock()
	j.reports[i] = r
	entry := j.entry(a.opt.ShowSQL)
	a.mu.Unlock()
	a.metrics.report(entry)
	if r.Verdict == analysis.Violation && !w.told {
		w.told = true
		a.opt.OnFinding(a.finding(j, w, r))
	}
}

func (a *Auditor) finding(j *job, w *world, r analysis.Report) alert.Finding {
	f := alert.Finding{
		ID: j.id, Group: j.plan.Group, Summary: j.plan.Summary, User: j.query.User, Database: j.query.Database,
		Neighbour: w.schema, Epsilon: float64(r.Claimed.Epsilon), Delta: r.Claimed.Delta, Source: r.Claimed.Source,
		Lower: float64(r.EpsilonLower), Estimate: float64(r.EpsilonEstimate), Confidence: r.Confidence, Reason: r.Reason,
		TrialsD0: r.Trials.D0, TrialsD1: r.Trials.D1, Odds: float64(r.Attacker.PosteriorOdds),
	}
	if r.Event != nil {
		f.Event = r.Event.Description
	}
	if a.opt.ShowSQL {
		f.SQL = j.query.SQL
	}
	return f
}

// postpone lets a job wait for a shadow database that is away or not right.
func (a *Auditor) postpone(j *job, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults++
	a.metrics.faults.Inc()
	if j.trouble != err.Error() {
		a.opt.Logger.Warn("audit waits; traffic is not affected", zap.String("audit", j.id), zap.Error(err), zap.Duration("retry_in", a.opt.RetryAfter))
	}
	j.state, j.trouble = Waiting, err.Error()
	j.notBefore = a.opt.Now().Add(a.opt.RetryAfter)
	a.enqueue(j)
}

// worst returns the report that matters most: a violation, then the highest lower bound.
func (j *job) worst() analysis.Report {
	_, r := j.worstIndex()
	return r
}

func (j *job) worstIndex() (int, analysis.Report) {
	best := 0
	for i, r := range j.reports {
		b := j.reports[best]
		if (r.Verdict == analysis.Violation) != (b.Verdict == analysis.Violation) {
			if r.Verdict == analysis.Violation {
				best = i
			}
			continue
		}
		if r.EpsilonLower > b.EpsilonLower {
			best = i
		}
	}
	return best, j.reports[best]
}

func (j *job) entry(showSQL bool) Entry { // with Auditor.mu held
	e := Entry{
		ID: j.id, Key: j.plan.Key, Group: j.plan.Group, Summary: j.plan.Summary,
		User: j.query.User, Database: j.query.Database, App: j.query.ApplicationName,
		Assumed: j.plan.Assumed, Seen: j.seen, FirstSeen: j.firstSeen, LastSeen: j.lastSeen, State: j.state, Trouble: j.trouble,
	}
	if j.plan.Claim != nil {
		e.ClaimRule = j.plan.Claim.Rule
	}
	i, r := j.worstIndex()
	e.Report = &r
	if i < len(j.worlds) {
		e.Neighbour = j.worlds[i].schema
		if showSQL {
			pair := j.worlds[i].sql
			e.SQL = &pair
		}
	}
	return e
}
