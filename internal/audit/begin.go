package audit

import (
	"context"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/multiplicity"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/hoisting"
	"github.com/dpwatch/dpwatch/rewrite"
)

// unjudgeable is an error that every later turn of an audit would meet: it ends the audit without evidence. All other
// errors postpone it.
type unjudgeable struct{ error }

func (e *unjudgeable) Unwrap() error { return e.error }

// voidTrials is what a worker reports of trials that show nothing: see replay.ReadsError.
type voidTrials struct{ error }

// begin gives a job whose turn begins the texts to replay, and evidence that belongs to the present copies, engine and
// texts. It returns false if the audit has no more turns, because the ledger has its verdict or production runs other
// functions, or with an error. The caller has the job's turn.
func (a *Auditor) begin(ctx context.Context, j *job) (bool, error) {
	if decided, err := a.recall(ctx, j); decided || err != nil { // first: nothing is known of the audit before
		return false, err
	}
	same, err := a.judge(ctx, j)
	if err != nil {
		return false, err
	}
	diverted := false
	if a.locked(func() { diverted = a.diverted(j) }); diverted {
		return false, nil
	}
	if err := a.createTexts(j); err != nil {
		return false, a.unjudged(err)
	}
	now, err := a.env.Lately(ctx)
	if err != nil {
		return false, err
	}
	var beginning beginning
	a.locked(func() { beginning = a.compare(j, now, same) })
	switch beginning {
	case goesOn:
		return true, nil
	case fromZero:
		return a.beginEvidence(ctx, j)
	}
	share, err := a.allot(ctx, j)
	if err != nil {
		return false, err
	}
	a.locked(func() {
		a.replaced(j, now)
		err = a.resetEvidence(j, share)
	})
	return err == nil, err
}

// beginning is how the evidence of a turn begins.
type beginning int

const (
	goesOn   beginning = iota
	fromZero           // there is none, or only of other texts
	replaced           // it is of other copies or of another engine
)

// compare returns how the evidence of a job's turn begins in an environment. same reports that the texts are those of
// the evidence.
func (d *desk) compare(j *job, now *environment.Environment, same bool) beginning {
	switch {
	case j.evidence == nil:
		j.epoch = now.Copies
		d.adoptEngine(j)
		return fromZero
	case !d.present(j, now):
		return replaced
	case !same:
		return fromZero
	}
	return goesOn
}

// beginEvidence begins the evidence of a job, whose texts exist, from zero. What was reported stays reported. The
// caller has the job's turn.
func (a *Auditor) beginEvidence(ctx context.Context, j *job) (bool, error) {
	share, err := a.allot(ctx, j)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil { // the next turn begins it
		a.abandon(j)
		j.worlds, j.evidence = nil, nil
		return false, err
	}
	err = a.resetEvidence(j, share)
	return err == nil, err
}

// present reports whether a job's evidence belongs to the present copies and engine.
func (d *desk) present(j *job, now *environment.Environment) bool {
	if j.epoch == "" {
		j.epoch = now.Copies
	}
	return d.sameEngine(j) && j.epoch == now.Copies
}

// replaced notes that the copies or the engine of a job's evidence were replaced; the caller drops it, because one
// audit must not mix two pairs of datasets.
func (d *desk) replaced(j *job, now *environment.Environment) {
	d.stand(j)
	j.reported = make([]bool, len(j.worlds)) // it belongs to the old copies and functions
	if j.epoch != now.Copies {
		j.restarts++
		j.epoch = now.Copies
	}
	d.adoptEngine(j)
}

// hasTexts reports whether a job has the texts to replay: not before its first turn, nor when it was restored.
func (j *job) hasTexts() bool { return len(j.worlds) > 0 && j.worlds[0].SQL.D0 != "" }

// createTexts creates the texts to replay, unless the job has them. The caller has the job's turn.
func (a *Auditor) createTexts(j *job) error {
	if j.hasTexts() {
		return nil
	}
	done := a.opt.Announce(j.query.SQL) // the texts are parsed for verification
	defer done()
	if err := a.replan(j); err != nil {
		return err
	}
	worlds, err := a.texts.Worlds(j.plan, len(j.query.Then) > 0)
	if err != nil {
		return err
	}
	a.locked(func() {
		j.adopt(worlds)
		j.plan = summaryOf(j.plan)
	})
	return nil
}

// resetEvidence drops all evidence of an audit whose texts exist, and begins again with a share of the error rate
// (see allot). With an error, which is an unjudgeable, the audit has no evidence.
func (d *desk) resetEvidence(j *job, share float64) error {
	d.dropEvidence(j)
	j.seed = d.opt.Seed() >> 11
	claim, opt := d.terms(j.plan, share)
	opt.Salt = d.salt(j.plan.Key)
	if s := j.life.standing; s != nil && !opt.NoClaim { // enough to resolve it
		opt.MaxTrials = max(opt.MaxTrials, min(s.Resolving(-math.Log(1-opt.Confidence)), mostResolving*opt.MaxTrials))
	}
	create := func() (*evidence.Evidence, error) {
		return evidence.NewReplayed(claim, opt, len(j.worlds), d.opt.Hoist)
	}
	if len(j.query.Then) > 0 { // every trial has a session of its own
		create = func() (*evidence.Evidence, error) { return evidence.New(claim, opt, len(j.worlds)) }
	}
	e, err := create()
	if err != nil {
		return &unjudgeable{err}
	}
	j.evidence = e
	j.reports = reportsOf(j)
	j.thresholds(d.single(e))
	return nil
}

// single returns the log-wealth at which evidence would be a violation if its audit were the only one.
func (d *desk) single(e *evidence.Evidence) float64 {
	return -math.Log((1 - d.opt.Analysis.Confidence) / float64(len(d.opt.D1)) * e.Share())
}

// thresholds notes the log-wealth that a violation takes, and how much of it is due to other audits. single is what it
// would take otherwise.
func (j *job) thresholds(single float64) {
	j.Threshold = j.reports[0].Threshold()
	j.margin = j.Threshold - single
}

// dropEvidence drops all evidence of an audit.
func (d *desk) dropEvidence(j *job) {
	d.abandon(j)
	j.evidence, j.trouble, j.Trials, j.Wealth, j.stored = nil, "", 0, 0, false
	j.reports = []analysis.Report{d.emptyReport(j.plan, "no trials")} // there always is one
	j.confirming, j.suspected, j.doubted = false, 0, false
	if j.hoisting == nil {
		j.hoisting = d.noHoisting()
	}
}

// mostResolving bounds the trials of an audit that may resolve a violation, in multiples of those of another one.
const mostResolving = 10

// newHoisting returns what creates the Hoisting of an audit.
func newHoisting(opt *Options) func(sql string) *replay.Hoisting {
	return func(sql string) *replay.Hoisting {
		h := replay.NewHoisting(opt.NoiseFunctions)
		h.Announce = func() func() { return opt.Announce(sql) }
		return h
	}
}

// noHoisting returns the report of hoisting before the first turn; nil if hoisting is off.
func (d *desk) noHoisting() *hoisting.Report {
	if !d.opt.Hoist {
		return nil
	}
	return &hoisting.Report{}
}

// greatestConfidence is the greatest confidence below 1 that a float64 can hold. Where an audit's share of the error
// rate is smaller than the rest, 1.1e-16, this rest is its share: a billion such audits add 1.1e-7 to the error rate of
// all.
const greatestConfidence = 1 - 0x1p-53

// terms returns the claim and the options for one neighbour of an audit that begins: its share of the error rate is
// shared among all neighbours.
func (d *desk) terms(plan *rewrite.Plan, share float64) (analysis.Claim, analysis.Options) {
	opt := d.opt.Analysis
	opt.Unordered = !plan.Sorted
	opt.Confidence = min(1-share*(1-opt.Confidence)/float64(len(d.opt.D1)), greatestConfidence)
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
	fleet, err := a.recordBeginning(ctx, j)
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

// turnOf returns the turn of a job, which has texts, and moves the evidence into it.
func (d *desk) turnOf(j *job, kind turn.Kind) turn.Turn {
	t := turn.Turn{
		Key: j.Key, ID: j.id, Kind: kind, Number: j.Turns(), Beginning: j.processes,
		Query: j.query, Settings: j.plan.Settings, SearchPath: j.plan.SearchPath, Worlds: j.worlds, Calls: d.callsOf(&j.life, j.plan),
		Copies: j.epoch, Engine: j.life.Engine, Source: j.source(),
		Seed: j.seed, Hoist: d.opt.Hoist,
	}
	if kind == turn.Watch {
		t.Claim, t.Terms = d.terms(j.plan, 1)
		t.Terms.Salt = d.salt(j.plan.Key)
		return t
	}
	t.Evidence, j.evidence = j.evidence, nil
	return t
}

// restart begins the evidence of a job again, which a turn has found to be void. The caller has the job's turn.
func (a *Auditor) restart(ctx context.Context, j *job, r *turn.Restart) error {
	a.locked(func() { a.voided(j, r) })
	_, err := a.beginEvidence(ctx, j)
	return err
}

// voided notes why the evidence of a job is void.
func (d *desk) voided(j *job, r *turn.Restart) {
	if r.Environment != nil {
		d.replaced(j, r.Environment)
	}
}
