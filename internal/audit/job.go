package audit

import (
	"context"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/multiplicity"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// job is one audit: one plan against every neighbour. The fields of a turn belong to the worker that has the job;
// the others are guarded by Auditor.mu.
type job struct {
	id        string // the first digits of key
	key       string
	route     string
	plan      *rewrite.Plan
	query     capture.Query
	seen      uint64
	firstSeen time.Time
	lastSeen  time.Time
	state     State
	trouble   string
	notBefore time.Time
	reports   []analysis.Report // one a neighbour, as of the last batch
	restarts  int               // times that the copies were made anew under it

	epoch  string           // of the copies that the evidence is of; "" = none yet. Written with Auditor.mu held
	worlds []world          // of the turn
	drift  *analysis.Drift  // of D0
	hoist  *replay.Hoisting // nil = its trials run the whole query
}

// world is one neighbour of D0.
type world struct {
	schema string
	sql    SQLPair
	audit  *analysis.Audit
	drift  *analysis.Drift
	told   bool // its violation was reported
}

// newJob makes an audit; one that cannot be judged is born decided, with its trouble told.
func (a *Auditor) newJob(q capture.Query, plan *rewrite.Plan) *job {
	j := &job{plan: plan, query: q, seen: 1, firstSeen: q.Completed, lastSeen: q.Completed, state: Queued}
	a.lay(j)
	return j
}

// lay lays out a job's evidence, of which there is none yet.
func (a *Auditor) lay(j *job) {
	j.worlds, j.reports, j.drift, j.trouble = nil, nil, &analysis.Drift{}, ""
	if a.opt.Hoist && j.hoist == nil {
		j.hoist = replay.NewHoisting(a.opt.NoiseFunctions)
		if sql := j.query.SQL; a.opt.Announce != nil {
			j.hoist.Announce = func() func() { return a.opt.Announce(sql) }
		}
	}
	d0, err := a.text(j.query, j.plan, a.opt.D0)
	if err != nil {
		a.condemn(j, err)
		return
	}
	claim, opt := a.terms(j.plan)
	opt.Salt = a.salt(j.plan.Key)
	for _, schema := range a.opt.D1 {
		w := world{schema: schema, sql: SQLPair{D0: d0}, drift: &analysis.Drift{}}
		if w.sql.D1, err = a.text(j.query, j.plan, schema); err == nil {
			w.audit, err = analysis.New(claim, opt)
		}
		if err != nil {
			a.condemn(j, err)
			return
		}
		j.worlds = append(j.worlds, w)
		j.reports = append(j.reports, j.report(&w))
	}
}

// text returns the query's text for one world.
func (a *Auditor) text(q capture.Query, plan *rewrite.Plan, schema string) (string, error) {
	if a.opt.OwnText {
		return q.SQL, nil
	}
	return plan.For(schema)
}

// terms returns the claim and the options for one neighbour of an audit that begins: the error rate is shared among all of
// them, and among all audits where it is the family's.
func (a *Auditor) terms(plan *rewrite.Plan) (analysis.Claim, analysis.Options) {
	opt := a.opt.Analysis
	rate := (1 - opt.Confidence) / float64(len(a.opt.D1))
	if a.opt.Family && plan.Claim != nil { // without a claim there is no alarm
		rate *= multiplicity.Share(int(a.begun.Add(1)))
	}
	opt.Confidence = 1 - rate
	if plan.Claim == nil {
		opt.NoClaim = true
		opt.MaxTrials = min(opt.MaxTrials, noClaimTrials)
		return analysis.Claim{}, opt
	}
	return analysis.Claim{Epsilon: plan.Claim.Epsilon, Delta: plan.Claim.Delta}, opt
}

// condemn ends a job that cannot be judged.
func (a *Auditor) condemn(j *job, err error) {
	text := a.say(err)
	j.state, j.trouble, j.worlds = Decided, text, nil
	claim := analysis.Claim{Epsilon: math.NaN()}
	source := ""
	if c := j.plan.Claim; c != nil {
		claim, source = analysis.Claim{Epsilon: c.Epsilon, Delta: c.Delta}, c.Source
	}
	r := analysis.Refused(claim, a.opt.Analysis.Confidence, text)
	r.Claimed.Source = source
	j.reports = []analysis.Report{r}
	a.metrics.verdicts.WithLabelValues(string(analysis.Inconclusive)).Inc()
}

func (j *job) report(w *world) analysis.Report {
	r := analysis.Temper(w.audit.Report(), j.drift, w.drift)
	if j.plan.Claim != nil {
		r.Claimed.Source = j.plan.Claim.Source
	}
	return r
}

// add takes one round; every neighbour is compared with the same trial on D0.
func (j *job) add(round replay.Round) {
	j.drift.Add(round[0])
	for i := range j.worlds {
		w := &j.worlds[i]
		w.drift.Add(round[i+1])
		w.audit.Add(round[0], round[i+1])
	}
}

// decided reports whether further rounds cannot change the query's verdict: one neighbour is enough for a violation,
// and the budget is the same for all.
func (j *job) decided() bool {
	for i := range j.worlds {
		if j.worlds[i].audit.Decided() {
			return true
		}
	}
	return false
}

// statement is the query for a replay on D0 and every neighbour.
func (j *job) statement() replay.Statement {
	s := replay.Statement{
		Worlds: []string{j.worlds[0].sql.D0}, Params: j.query.Params, Settings: j.plan.Settings, SearchPath: j.plan.SearchPath,
		Simple: j.query.Protocol == capture.Simple, Named: j.query.Named, Hoist: j.hoist,
	}
	for i := range j.worlds {
		s.Worlds = append(s.Worlds, j.worlds[i].sql.D1)
	}
	return s
}

// turnTime is how long a turn is at least, however quick the trials are: a turn may begin with opening sessions.
const turnTime = time.Second

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
	if err := a.replay(ctx, j); err != nil {
		if ctx.Err() == nil {
			a.postpone(j, err)
		}
		return
	}
	fresh, err := a.current(ctx, j) // the copies may have changed during the turn
	if err != nil {
		if ctx.Err() == nil {
			a.postpone(j, err)
		}
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	j.trouble = ""
	if fresh && j.decided() {
		j.state = Decided
		a.metrics.verdicts.WithLabelValues(string(j.worst().Verdict)).Inc()
		return
	}
	j.state = Queued
	a.enqueue(j)
}

// replay runs one turn; evidence that hoisting has spoilt is dropped.
func (a *Auditor) replay(ctx context.Context, j *job) error {
	if _, err := a.current(ctx, j); err != nil {
		return err
	}
	err := a.rounds(ctx, j)
	if differ := j.hoist.Disagreed(); differ != nil {
		a.opt.Logger.Warn("audit begins again without hoisting", zap.String("audit", j.id), zap.Error(differ))
		a.mu.Lock()
		defer a.mu.Unlock()
		told := j.worlds
		a.lay(j)
		for i := range j.worlds {
			j.worlds[i].told = told[i].told
		}
		return nil
	}
	return err
}

// rounds runs the rounds of one turn.
func (a *Auditor) rounds(ctx context.Context, j *job) error {
	run, err := a.run(j)
	if err != nil {
		return err
	}
	keep := false
	defer func() { a.kept.put(j, run, keep) }()
	if err := a.stream(ctx, j, run); err != nil {
		return err
	}
	if j.untold() {
		// Nothing is told that two generations of copies may have shown, nor that hoisting alone may have.
		if fresh, err := a.current(ctx, j); err != nil || !fresh {
			return err
		}
		if err := run.Verify(ctx); err != nil {
			return err
		}
		a.publish(j)
	}
	keep = !j.decided()
	return nil
}

// stream takes the rounds of one turn, and publishes what they show until a violation is to be told.
func (a *Auditor) stream(ctx context.Context, j *job, run *replay.Run) error {
	began, ran := a.opt.Now(), 0
	for batch, err := range run.Stream(ctx, a.opt.BatchTrials) {
		if err != nil {
			return err
		}
		a.metrics.batch(batch)
		for _, round := range batch.Rounds {
			if j.decided() {
				break
			}
			j.add(round)
		}
		if j.untold() {
			break
		}
		a.publish(j)
		ran += len(batch.Rounds)
		if j.decided() || ran >= a.opt.TurnTrials && a.opt.Now().Sub(began) >= turnTime {
			break
		}
	}
	return nil
}

// publish makes the latest reports visible and tells every violation once.
func (a *Auditor) publish(j *job) {
	reports := make([]analysis.Report, len(j.worlds))
	for i := range j.worlds {
		reports[i] = j.report(&j.worlds[i])
	}
	a.mu.Lock()
	j.reports = reports
	entry := j.entry(&a.opt)
	a.mu.Unlock()
	a.metrics.report(entry)
	for i, r := range reports {
		if w := &j.worlds[i]; r.Verdict == analysis.Violation && !w.told {
			w.told = true
			a.opt.OnFinding(a.finding(j, w, r))
		}
	}
}

func (a *Auditor) finding(j *job, w *world, r analysis.Report) alert.Finding {
	f := alert.Finding{
		ID: j.id, Group: j.plan.Group, Summary: j.plan.Summary, User: j.query.User, Database: j.query.Database,
		Neighbour: w.schema, Route: j.route, Epsilon: float64(r.Claimed.Epsilon), Delta: r.Claimed.Delta, Source: r.Claimed.Source,
		Lower: float64(r.EpsilonLower), Estimate: float64(r.EpsilonEstimate), Confidence: r.Confidence, Reason: r.Reason,
		TrialsD0: r.Trials.D0, TrialsD1: r.Trials.D1, Odds: float64(r.Attacker.PosteriorOdds),
	}
	if a.opt.ShowValues {
		r = r.Reveal()
	}
	if e := r.Event; e != nil {
		f.Event = alert.Event{
			Description: e.Description, Kind: string(e.Kind), Column: e.Column, Partition: e.Partition,
			Tail: string(e.Tail), Direction: e.Direction, D0: float64(e.D0), D1: float64(e.D1),
		}
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
	text := a.say(err)
	if j.trouble != text {
		a.opt.Logger.Warn("audit waits; traffic is not affected", zap.String("audit", j.id), zap.String("error", text), zap.Duration("retry_in", a.opt.RetryAfter))
	}
	j.state, j.trouble = Waiting, text
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
		if Worse(r, j.reports[best]) {
			best = i
		}
	}
	return best, j.reports[best]
}

// Worse reports whether a matters more than b: a violation first, then the higher lower bound.
func Worse(a, b analysis.Report) bool {
	if (a.Verdict == analysis.Violation) != (b.Verdict == analysis.Violation) {
		return a.Verdict == analysis.Violation
	}
	return a.EpsilonLower > b.EpsilonLower
}

func (j *job) entry(opt *Options) Entry { // with Auditor.mu held
	e := Entry{
		ID: j.id, Key: j.key, Route: j.route, Group: j.plan.Group, Summary: j.plan.Summary,
		User: j.query.User, Database: j.query.Database, App: j.query.ApplicationName,
		Assumed: j.plan.Assumed, Seen: j.seen, FirstSeen: j.firstSeen, LastSeen: j.lastSeen, State: j.state, Trouble: j.trouble, Restarts: j.restarts,
	}
	if j.plan.Claim != nil {
		e.ClaimRule = j.plan.Claim.Rule
	}
	i, r := j.worstIndex()
	if opt.ShowValues {
		r = r.Reveal()
	}
	e.Report = &r
	if len(j.worlds) > 1 {
		for i := range j.worlds { // told is the worker's: a world is not copied
			one := j.reports[i]
			e.Neighbours = append(e.Neighbours, Neighbour{
				Schema: j.worlds[i].schema, Verdict: one.Verdict, Lower: one.EpsilonLower, Estimate: one.EpsilonEstimate,
			})
		}
	}
	if j.hoist != nil {
		hoisting := j.hoist.Report()
		e.Hoisting = &hoisting
	}
	if i < len(j.worlds) {
		e.Neighbour = j.worlds[i].schema
		if opt.ShowSQL {
			pair := j.worlds[i].sql
			e.SQL = &pair
		}
	}
	return e
}
