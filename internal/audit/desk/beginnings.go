package desk

import (
	"math"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/multiplicity"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Beginnings are those of turns: the query and the texts to replay, and evidence that belongs to them.
type Beginnings struct {
	*core
	versions   *versions
	violations *violations
	places     *places
	watches    *Watches
	controls   *Controls
}

// Recall gives an audit in its turn what the ledger has of it, unless that is of other copies, and reports whether the
// audit is decided. The error says why its evidence cannot be used.
func (b *Beginnings) Recall(key string, row *ledger.Audit, found bool, copies string) (decided bool, fault error) {
	j := b.job(key)
	j.recalled = true
	if !found {
		return false, nil
	}
	if j.control {
		return b.recallControl(j, row, copies)
	}
	j.processes = row.Processes
	j.recallLife(row)
	if row.Progress == nil || copies != row.DataEpoch {
		return false, nil
	}
	if fault = b.resume(j, row); fault != nil {
		return false, fault
	}
	return j.Phase() != schedule.Running, nil
}

// Compare returns how the evidence of an audit's turn begins in an environment. same reports that the texts are those
// of the evidence.
func (b *Beginnings) Compare(key string, now *environment.Environment, same bool) Beginning {
	j := b.job(key)
	switch {
	case j.evidence == nil:
		j.copies = now.Copies
		b.versions.adoptEngine(j)
		return FromZero
	case !b.versions.present(j, now):
		return Replaced
	case !same:
		return FromZero
	}
	return GoesOn
}

// Present reports whether the evidence of an audit belongs to the copies and the engine of an environment.
func (b *Beginnings) Present(key string, now *environment.Environment) bool {
	return b.versions.present(b.job(key), now)
}

// Row returns the row with which the ledger records that the evidence of an audit begins.
func (b *Beginnings) Row(key string) (ledger.Audit, error) {
	row, err := stored(b.job(key), nil)
	row.State, row.Progress = string(view.Running), nil
	return row, err
}

// Begun is what the ledger has counted with the beginning of evidence.
type Begun struct {
	Processes int          // how often the evidence of this audit has begun
	Fleet     ledger.Fleet // that of any audit
}

// Begin drops all evidence of an audit and begins again with its share of the error rate. counted is nil without a
// ledger. now is the environment if the evidence before was of another one, else nil. With an error, which is an
// Unjudgeable, the audit has no evidence.
func (b *Beginnings) Begin(key string, counted *Begun, now *environment.Environment) error {
	j := b.job(key)
	if now != nil {
		b.replaced(j, now)
	}
	if counted == nil {
		counted = b.count(j)
	}
	j.processes = counted.Processes
	return b.resetEvidence(j, b.share(j, counted.Fleet))
}

// count counts the beginning of evidence that no ledger has.
func (b *Beginnings) count(j *job) *Begun {
	n := &Begun{Processes: j.processes + 1}
	if b.opt.Family && j.plan.Claim != nil && !j.control {
		b.fleet.Begun++
		n.Fleet = b.fleet
	}
	return n
}

// share returns the share of the error rate of evidence that begins: with Options.Family, each beginning counts as
// another audit of the fleet, and with Options.Discoveries the violations reported before it raise its share; otherwise
// the beginnings of one audit share its rate, so that the probability of a false alarm over the audit's whole life is
// at most the rate. So do those of a control audit on one version of the copies, which is no audit of the fleet.
func (b *Beginnings) share(j *job, fleet ledger.Fleet) float64 {
	switch {
	case j.plan.Claim == nil:
		return 1
	case j.control:
		return multiplicity.RestartShare(j.processes - 1)
	case b.opt.Discoveries:
		return multiplicity.DiscoveryShare(fleet.Begun, fleet.Reported)
	case b.opt.Family:
		return multiplicity.Share(fleet.Begun)
	}
	return multiplicity.RestartShare(j.processes - 1)
}

// Unbegun drops the evidence of an audit: the ledger could not record that it begins again, and the next turn begins
// it.
func (b *Beginnings) Unbegun(key string) {
	j := b.job(key)
	b.violations.abandon(j)
	j.worlds, j.evidence = nil, nil
}

// Turn returns an audit, which has texts, for its turn, and moves the evidence into it.
func (b *Beginnings) Turn(key string) step.Audit {
	j := b.job(key)
	j.stored = false
	a := b.audit(j)
	now := b.environment
	j.evidence.SetUnlike(strings.Join(engine.Unlike(now.Production, now.Shadow, j.query.User, j.plan.Settings), ", "))
	a.Evidence, j.evidence = j.evidence, nil
	return a
}

// Watch returns a decided audit for its turn in the watch share. The error says why the state of its change detector
// cannot be used, which then starts again.
func (b *Beginnings) Watch(key string) (a step.Audit, fault error) {
	j := b.job(key)
	a = b.audit(j)
	claim, terms := b.opt.terms(j.plan, 1)
	terms.Salt = b.salt(j.plan.Key)
	a.Watch = evidence.NewWatch(claim, terms, len(j.worlds))
	if j.watch.state != nil {
		var state []byte
		if state, fault = ledger.Unseal(j.watch.state); fault == nil {
			fault = a.Watch.UnmarshalBinary(state)
		}
	}
	return a, fault
}

// Unjudgeable is an error that every later turn of an audit would meet: it ends the audit without evidence. All other
// errors postpone it.
type Unjudgeable struct{ Err error }

func (e *Unjudgeable) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *Unjudgeable) Unwrap() error { return e.Err }

// VoidTrials is what a worker reports of trials that show nothing: see replay.ReadsError.
type VoidTrials struct{ Err error }

func (e *VoidTrials) Error() string { return e.Err.Error() }

// Beginning is how the evidence of a turn begins.
type Beginning int

// The beginnings.
const (
	GoesOn   Beginning = iota
	FromZero           // there is none, or only of other texts
	Replaced           // it is of other copies or of another engine
)

// replaced notes that the copies or the engine of a job's evidence were replaced; the caller drops it, because one
// audit must not mix two pairs of datasets.
func (b *Beginnings) replaced(j *job, now *environment.Environment) {
	b.violations.stand(j)
	j.reported = make([]bool, len(j.worlds)) // it belongs to the old copies and functions
	if j.copies != now.Copies {
		j.restarts++
		if j.copies = now.Copies; j.control {
			j.processes = 0
		}
	}
	b.versions.adoptEngine(j)
}

// resetEvidence drops all evidence of an audit whose texts exist, and begins again with a share of the error rate
// (see share). With an error, which is an Unjudgeable, the audit has no evidence.
func (b *Beginnings) resetEvidence(j *job, share float64) error {
	b.dropEvidence(j)
	j.seed = b.opt.Seed() >> 11
	claim, opt := b.opt.terms(j.plan, share)
	if j.control {
		claim, opt.Confidence = j.controlClaim(claim), 1-share*(1-b.opt.Analysis.Confidence)
	}
	opt.Salt = b.salt(j.plan.Key)
	if s := j.life.standing; s != nil && !opt.NoClaim { // enough to resolve it
		opt.MaxTrials = max(opt.MaxTrials, min(s.Resolving(-math.Log(1-opt.Confidence)), mostResolving*opt.MaxTrials))
	}
	create := func() (*evidence.Evidence, error) {
		return evidence.NewReplayed(claim, opt, len(j.worlds), b.opt.Hoist)
	}
	if len(j.query.Then) > 0 { // every trial has a session of its own
		create = func() (*evidence.Evidence, error) { return evidence.New(claim, opt, len(j.worlds)) }
	}
	e, err := create()
	if err != nil {
		return &Unjudgeable{err}
	}
	j.evidence = e
	j.reports = reportsOf(j)
	j.thresholds(b.single(e))
	return nil
}

// single returns the log-wealth at which evidence would be a violation if its audit were the only one.
func (b *Beginnings) single(e *evidence.Evidence) float64 {
	return -math.Log((1 - b.opt.Analysis.Confidence) / float64(len(b.opt.D1)) * e.Share())
}

// thresholds notes the log-wealth that a violation takes, and how much of it is due to other audits. single is what it
// would take otherwise.
func (j *job) thresholds(single float64) {
	j.Threshold = j.reports[0].Threshold()
	j.margin = j.Threshold - single
}

// dropEvidence drops all evidence of an audit.
func (b *Beginnings) dropEvidence(j *job) {
	b.violations.abandon(j)
	j.evidence, j.trouble, j.Trials, j.Wealth, j.stored = nil, "", 0, 0, false
	j.reports = []analysis.Report{b.emptyReport(j.plan, "no trials")} // there always is one
	j.confirming, j.suspected, j.doubted = false, 0, false
	if j.hoisting == nil {
		j.hoisting = b.noHoisting()
	}
}

// mostResolving bounds the trials of an audit that may resolve a violation, in multiples of those of another one.
const mostResolving = 10

// greatestConfidence is the greatest confidence below 1 that a float64 can hold. Where an audit's share of the error
// rate is smaller than the rest, 1.1e-16, this rest is its share: a billion such audits add 1.1e-7 to the error rate of
// all.
const greatestConfidence = 1 - 0x1p-53

// terms returns the claim and the options for one neighbour of an audit that begins: its share of the error rate is
// shared among all neighbours.
func (o *Options) terms(plan *rewrite.Plan, share float64) (analysis.Claim, analysis.Options) {
	opt := o.Analysis
	opt.Unordered, opt.Query = !plan.Sorted, analysis.Query(plan.Facts)
	opt.Confidence = min(1-share*(1-opt.Confidence)/float64(len(o.D1)), greatestConfidence)
	if plan.Claim == nil { // no alarm is possible
		opt.NoClaim = true
		opt.MaxTrials = min(opt.For(analysis.Claim{}).MaxTrials, noClaimTrials)
		return analysis.Claim{}, opt
	}
	claim := analysis.CurveClaim(plan.Claim.Curve, plan.Claim.Epsilon, plan.Claim.Delta)
	return claim, opt.For(claim)
}

// audit returns the audit of a job, which has texts, without evidence.
func (b *Beginnings) audit(j *job) step.Audit {
	b.controls.follow(j)
	a := step.Audit{
		Key: j.Key, SQL: j.query.SQL, Statement: step.Statement(j.query, j.plan, j.worlds), Twin: j.worlds[0].Twin, Source: j.source(), Doubted: j.confirming,
		Beginning: j.processes, Copies: j.copies, Engine: j.life.Engine, Calls: b.versions.callsOf(&j.life, j.plan), Seed: j.seed + uint64(j.Turns()), //nolint:gosec // positive
	}
	if j.control {
		a.Statement.Places = []int{0, 1 + len(b.opt.D1)}
	}
	return a
}

// noClaimTrials bounds the trials of a query without a claim: its estimate is shown, but there can be no violation.
const noClaimTrials = 500
