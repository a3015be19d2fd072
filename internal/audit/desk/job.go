package desk

import (
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/replay/hoisting"
	"github.com/dpwatch/dpwatch/rewrite"
)

// job is one audit: one plan against every neighbour. Its evidence is away while a turn
// has it.
type job struct {
	schedule.Audit // its place and its turns

	id         string // the first digits of the key
	hash       uint64 // of the key, for the coverage
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
	losses     int               // turns in a row that lost a session
	watch      watch             // of a decided audit
	changes    int               // alarms of its change detector
	changed    time.Time         // the last one

	copies   string             // version of those of the evidence; "" = none yet
	worlds   []step.World       // nil before the first turn
	reported []bool             // by neighbour: its violation has been reported
	evidence *evidence.Evidence // nil before the first turn, during a turn, and after the audit is decided
	seed     uint64             // of the order of the trials of the evidence, see step.Audit; below 2^53
	hoisting *hoisting.Report   // nil = trials run the whole query

	life life // what it keeps about the engine

	control bool // see Controls
	chosen  bool // a control audit belongs to it

	recalled bool   // the ledger was asked for its evidence, or need not be
	stored   bool   // the ledger has its latest evidence
	given    *given // the turn that was given to the workers; nil = none

	margin     float64 // how much more log-wealth a violation takes than in the only audit
	doubted    bool    // its evidence has been that of a violation at the error rate of a single audit
	confirming bool    // a confirmation has begun, or has ended with the verdict
	suspected  float64 // the wealth to be confirmed

	requested *int // how often the evidence had begun when an operator's request was fulfilled; nil = none waits for the ledger

	unshown bool   // its entry in the status panics
	shown   *shown // what the status shows of it; nil = it may have changed since
}

// source returns the source of the claim.
func (j *job) source() string {
	if j.plan.Claim == nil {
		return ""
	}
	return j.plan.Claim.Source
}

// adopt gives a job the texts to replay. What was reported of the neighbours stays.
func (j *job) adopt(worlds []step.World) {
	if j.worlds = worlds; len(j.reported) != len(worlds) {
		j.reported = make([]bool, len(worlds))
	}
}

// worst returns the most important report.
func (j *job) worst() analysis.Report { return j.reports[evidence.Worst(j.reports)] }

// entry returns what the status shows of a job.
func (j *job) entry(opt *Options) view.Entry {
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
		for i := range j.worlds {
			one := j.reports[i]
			j.display(&one)
			e.Neighbours = append(e.Neighbours, view.Neighbour{
				Schema: j.worlds[i].Schema, Verdict: one.Verdict, Lower: one.EpsilonLower, Estimate: one.EpsilonEstimate,
			})
		}
	}
	e.Hoisting = j.hoisting
	if i < len(j.worlds) {
		e.Neighbour = j.worlds[i].Schema
		if opt.ShowSQL {
			pair := j.worlds[i].SQL
			e.SQL = &pair
		}
	}
	return e
}

// hasTexts reports whether a job has the texts to replay: not before its first turn, nor when it was restored.
func (j *job) hasTexts() bool { return len(j.worlds) > 0 && j.worlds[0].SQL.D0 != "" }

// given is a turn that a worker has or may take.
type given struct {
	worker string // its id; "" = none has taken it
	before int    // executions of the audit before the turn
}
