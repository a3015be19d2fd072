package audit

import (
	"context"
	"math"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/multiplicity"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/trial"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// job is one audit: one plan against every neighbour. The fields of a turn belong to the worker that has the job; the
// others are guarded by Auditor.mu.
type job struct {
	schedule.Audit // its place and its turns

	id         string // the first digits of the key
	plan       *rewrite.Plan
	edition    uint64 // of the catalogs with which the plan was made
	query      capture.Query
	admitted   time.Time // when the query was captured here last
	answers    []string  // where its answers went
	firstSeen  time.Time
	trouble    string
	reports    []analysis.Report // one per neighbour, as of the last batch; without figures before the first
	partitions int               // of the worst report, before it was truncated
	restarts   int               // how often the copies were created again during the audit
	decided    time.Time         // when the audit was decided last
	repeats    int               // how often it was repeated: see Options.Repeat
	previous   analysis.Verdict  // before the last repetition
	processes  int               // how often its evidence began: each time has its share of the error rate
	ledgerAway bool              // trouble is that of the ledger
	held       bool              // it waits until the catalogs are read
	watch      watch             // of a decided audit
	changes    int               // alarms of its change detector
	changed    time.Time         // the last one

	epoch    string              // of the copies of the evidence; "" = none yet. Written with Auditor.mu held
	worlds   []world             // of the turn; nil before the first
	evidence *evidence.Evidence  // of the turn; nil before the first, and after the audit is decided
	hoist    *replay.Hoisting    // nil = trials run the whole query, or the audit is decided
	hoisting *replay.HoistReport // of a decided audit
	hoisted  int                 // hoisted rounds before the evidence began
	seed     uint64              // of the order of the trials of the evidence, see orderSeed; below 2^53

	life life // what it keeps about the engine

	recalled bool           // the ledger was asked for its evidence, or need not be
	stored   bool           // the ledger has its latest evidence. Like the fields of a turn
	given    *givenTurn     // the turn that was given to the workers; nil = none. Guarded by Auditor.mu
	hurried  func() bool    // in a worker: whether the turn must end soon; nil = as long as the auditor's roster says
	writes   *ledger.Engine // in a worker: what may write its audit; nil = the keeper's

	doubted    bool    // its evidence has been that of a violation at the error rate of a single audit. Written with Auditor.mu held
	confirming bool    // a confirmation has begun, or has ended with the verdict; see confirm. Written with Auditor.mu held
	suspected  float64 // the wealth to be confirmed

	unshown bool // its entry in the status panics. Guarded by Auditor.mu
}

// world is one neighbour of D0.
type world struct {
	schema   string
	sql      view.SQLPair
	steps    [2][]string // of a sequence: the texts of its statements on D0 and on the neighbour
	reported bool        // its violation has been reported
}

// unjudgeable is an error that every later turn of an audit would meet: it ends the audit without evidence. All other
// errors postpone it.
type unjudgeable struct{ error }

// prepare creates the texts and the evidence of an audit in its first turn. It returns false if the audit has no more
// turns, because the ledger has its verdict or production runs other functions, or with an error. The caller has the
// job's turn.
func (a *Auditor) prepare(ctx context.Context, j *job) (bool, error) {
	if decided, err := a.recall(ctx, j); decided || err != nil { // first: nothing is known of the audit before
		return false, err
	}
	same, err := a.judge(ctx, j)
	if err != nil {
		return false, err
	}
	if a.diverted(j) {
		return false, nil
	}
	if err := a.createTexts(j); err != nil {
		return false, a.unjudged(err)
	}
	if j.evidence != nil && !same {
		j.hoist = nil
		return true, a.beginAgain(ctx, j)
	}
	if j.evidence != nil {
		return true, nil
	}
	share, err := a.allot(ctx, j)
	if err != nil {
		return false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	err = a.resetEvidence(j, share)
	return err == nil, err
}

// hasTexts reports whether a job has the texts to replay: not before its first turn, nor when it was restored.
func (j *job) hasTexts() bool { return len(j.worlds) > 0 && j.worlds[0].sql.D0 != "" }

// createTexts creates the texts to replay, unless the job has them. The caller has the job's turn.
func (a *Auditor) createTexts(j *job) error {
	if j.hasTexts() {
		return nil
	}
	done := a.opt.Announce(j.query.SQL) // the texts are parsed for verification
	worlds, err := a.worlds(j)
	done()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range min(len(worlds), len(j.worlds)) {
		worlds[i].reported = j.worlds[i].reported
	}
	j.worlds, j.plan = worlds, summaryOf(j.plan)
	return nil
}

// worlds returns the neighbours with the texts to replay, without evidence.
func (a *Auditor) worlds(j *job) ([]world, error) {
	if err := a.replan(j); err != nil {
		return nil, err
	}
	if len(j.query.Then) > 0 {
		return a.sequenceWorlds(j)
	}
	d0, err := a.text(j.plan, a.opt.D0)
	if err != nil {
		return nil, err
	}
	var worlds []world
	for _, schema := range a.opt.D1 {
		d1, err := a.text(j.plan, schema)
		if err != nil {
			return nil, err
		}
		worlds = append(worlds, world{schema: schema, sql: view.SQLPair{D0: d0, D1: d1}})
	}
	return worlds, nil
}

// resetEvidence drops all evidence of an audit whose worlds exist, and begins again with a share of the error rate (see
// allot). With an error, which is an unjudgeable, the audit has no evidence. The caller holds Auditor.mu and has the
// job's turn.
func (a *Auditor) resetEvidence(j *job, share float64) error {
	a.abandon(j)
	j.evidence, j.trouble, j.Trials, j.Wealth, j.stored = nil, "", 0, 0, false
	j.reports = []analysis.Report{a.emptyReport(j.plan, "no trials")} // there always is one
	j.confirming, j.suspected, j.doubted = false, 0, false
	j.seed = a.opt.Seed() >> 11
	if j.hoist == nil {
		j.hoist = a.hoisting(j.query.SQL)
	}
	if j.hoist != nil {
		j.hoisted = j.hoist.Report().HoistedRounds
	}
	claim, opt := a.terms(j.plan, share)
	opt.Salt = a.salt(j.plan.Key)
	if s := j.life.standing; s != nil && !opt.NoClaim { // enough to resolve it
		opt.MaxTrials = max(opt.MaxTrials, min(s.Resolving(-math.Log(1-opt.Confidence)), mostResolving*opt.MaxTrials))
	}
	e, err := evidence.New(claim, opt, len(j.worlds))
	if err != nil {
		return &unjudgeable{err}
	}
	j.evidence = e
	for i := range j.worlds {
		j.worlds[i].reported = false
	}
	j.reports = reportsOf(j)
	j.Threshold = -math.Log(1 - opt.Confidence)
	return nil
}

// mostResolving bounds the trials of an audit that may resolve a violation, in multiples of those of another one.
const mostResolving = 10

// hoisting returns the Hoisting of a new audit, or nil if hoisting is off.
func (a *Auditor) hoisting(sql string) *replay.Hoisting {
	if !a.opt.Hoist {
		return nil
	}
	h := replay.NewHoisting(a.opt.NoiseFunctions)
	h.Announce = func() func() { return a.opt.Announce(sql) }
	return h
}

// text returns the query's text for one world.
func (a *Auditor) text(plan *rewrite.Plan, schema string) (string, error) {
	if a.opt.OwnText {
		return plan.Text(), nil
	}
	return plan.For(schema)
}

// greatestConfidence is the greatest confidence below 1 that a float64 can hold. Where an audit's share of the error
// rate is smaller than the rest, 1.1e-16, this rest is its share: a billion such audits add 1.1e-7 to the error rate of
// all.
const greatestConfidence = 1 - 0x1p-53

// terms returns the claim and the options for one neighbour of an audit that begins: its share of the error rate is
// shared among all neighbours.
func (a *Auditor) terms(plan *rewrite.Plan, share float64) (analysis.Claim, analysis.Options) {
	opt := a.opt.Analysis
	opt.Unordered = !plan.Sorted
	opt.Confidence = min(1-share*(1-opt.Confidence)/float64(len(a.opt.D1)), greatestConfidence)
	if plan.Claim == nil { // no alarm is possible
		opt.NoClaim = true
		opt.MaxTrials = min(opt.MaxTrials, noClaimTrials)
		return analysis.Claim{}, opt
	}
	return analysis.Claim{Epsilon: plan.Claim.Epsilon, Delta: plan.Claim.Delta}, opt
}

// allot returns the share of the error rate of evidence that begins: with Options.Family, each beginning counts as
// another audit of the fleet, and with Options.Discoveries the violations reported before it raise its share; otherwise
// the beginnings of one audit share its rate, so that the probability of a false alarm over the audit's whole life is
// at most the rate. The error is that of the ledger. The caller has the job's turn.
func (a *Auditor) allot(ctx context.Context, j *job) (float64, error) {
	fleet, err := a.begin(ctx, j)
	switch {
	case err != nil:
		return 0, err
	case j.plan.Claim == nil:
		return 1, nil
	case a.opt.Discoveries:
		return multiplicity.DiscoveryShare(fleet.Begun, fleet.Reported), nil
	case a.opt.Family:
		return multiplicity.Share(fleet.Begun), nil
	}
	return multiplicity.RestartShare(j.processes - 1), nil
}

// markInconclusive marks an audit that cannot be judged inconclusive. The ledger keeps the evidence. The caller holds
// Auditor.mu.
func (a *Auditor) markInconclusive(j *job, err error) {
	a.abandon(j)
	j.trouble, j.worlds = a.say(err), nil
	j.reports = []analysis.Report{a.emptyReport(j.plan, j.trouble)}
	a.roster.Decide(&j.Audit, j.Open, 0)
	j.decided = a.opt.Now()
	a.put(j, nil)
	a.release(j)
	a.metrics.verdicts.WithLabelValues(string(analysis.Inconclusive)).Inc()
}

// emptyReport returns the report of an audit without trials.
func (a *Auditor) emptyReport(plan *rewrite.Plan, reason string) analysis.Report {
	claim, source := analysis.Claim{Epsilon: math.NaN()}, ""
	if c := plan.Claim; c != nil {
		claim, source = analysis.Claim{Epsilon: c.Epsilon, Delta: c.Delta}, c.Source
	}
	r := analysis.Refused(claim, a.opt.Analysis.Confidence, reason)
	r.Claimed.Source = source
	return r
}

func (j *job) report(i int) analysis.Report {
	r := j.evidence.Report(i)
	if j.plan.Claim != nil {
		r.Claimed.Source = j.plan.Claim.Source
	}
	return r
}

// statement returns the query for a replay on D0 and every neighbour.
func (j *job) statement(varyText bool) replay.Statement {
	s := replay.Statement{
		Worlds: []string{j.worlds[0].sql.D0}, Params: j.query.Params, Settings: j.plan.Settings, SearchPath: j.plan.SearchPath,
		Simple: j.simple(), Named: j.query.Named, Hoist: j.hoist,
		Separate: trial.Separation(j.evidence, varyText),
	}
	for i := range j.worlds {
		s.Worlds = append(s.Worlds, j.worlds[i].sql.D1)
	}
	if len(j.query.Then) > 0 {
		j.ofSequence(&s, varyText)
	}
	return s
}

func (j *job) simple() bool { return j.query.Protocol == capture.Simple }

func (a *Auditor) finding(j *job, w *world, r analysis.Report) alert.Finding {
	f := alert.Finding{
		ID: j.id, Group: j.plan.Group, Summary: j.plan.Summary, User: j.query.User, Database: j.query.Database,
		Neighbour: w.schema, Route: j.Owner.Route, Epsilon: float64(r.Claimed.Epsilon), Delta: r.Claimed.Delta, Source: r.Claimed.Source,
		Lower: float64(r.EpsilonLower), Estimate: float64(r.EpsilonEstimate), Confidence: r.Confidence, Reason: r.Reason,
		TrialsD0: r.Trials.D0, TrialsD1: r.Trials.D1, Odds: float64(r.Attacker.PosteriorOdds),
		Application: j.query.ApplicationName, EngineEpoch: j.life.Engine,
	}
	if r.DetectedAt == nil {
		f.Lower, f.Estimate, f.Odds = math.NaN(), math.NaN(), math.NaN()
	}
	f.Kind = finding.OfViolation(f.Lower)
	if s := j.life.standing; s != nil {
		f.EngineEpoch, f.Change, f.Found = s.FirstEngine, s.Change, s.FirstSeen
	}
	if a.opt.ShowValues {
		r = r.Reveal()
	}
	if r.Finding != nil {
		f.Line = r.Finding.Line
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

// worst returns the most important report.
func (j *job) worst() analysis.Report { return j.reports[evidence.Worst(j.reports)] }

func (j *job) entry(opt *Options) view.Entry { // with Auditor.mu held
	e := view.Entry{
		ID: j.id, Key: j.Key, Route: j.Owner.Route, Group: j.plan.Group, Summary: j.plan.Summary,
		User: j.query.User, Database: j.query.Database, App: j.query.ApplicationName,
		Destinations: j.answers, Assumed: j.plan.Assumed, Seen: j.Seen, FirstSeen: j.firstSeen, LastSeen: j.LastSeen, State: j.state(), Trouble: j.trouble, Restarts: j.restarts, Repeats: j.repeats, Previous: j.previous,
		Confirming: j.confirming && j.state() != view.Decided,
		Partitions: j.partitions,
		Changes:    j.changes, Changed: j.changed, Watch: j.watchState(opt),
	}
	if j.given != nil {
		e.Worker = j.given.worker
	}
	if j.plan.Claim != nil {
		e.ClaimRule = j.plan.Claim.Rule
	}
	i := evidence.Worst(j.reports)
	r := j.reports[i]
	if opt.ShowValues {
		r = r.Reveal()
	}
	e.Verdict = j.display(&r)
	j.live(&e)
	e.Report = &r
	if len(j.worlds) > 1 && len(j.reports) == len(j.worlds) {
		for i := range j.worlds { // world is not copied: the worker owns reported
			one := j.reports[i]
			j.display(&one)
			e.Neighbours = append(e.Neighbours, view.Neighbour{
				Schema: j.worlds[i].schema, Verdict: one.Verdict, Lower: one.EpsilonLower, Estimate: one.EpsilonEstimate,
			})
		}
	}
	if e.Hoisting = j.hoisting; j.hoist != nil {
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
