package read

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/curve"
)

// Stored is what the tables of the ledger have about a query and its audit, without the evidence and the statement.
type Stored struct {
	Key          string      `json:"key"`
	Engine       string      `json:"engine"`
	Fingerprint  string      `json:"fingerprint"`
	Summary      string      `json:"summary"`
	Epsilon      *float64    `json:"epsilon_claimed"` // nil = the query has no claim
	Delta        *float64    `json:"delta_claimed"`
	Curve        curve.Curve `json:"claim_curve,omitempty"` // the whole claim if it is a curve
	Source       string      `json:"claim_source"`
	Rule         string      `json:"claim_rule"`
	Destinations []string    `json:"destinations,omitempty"` // where answers went
	Executions   int64       `json:"executions"`
	LastDay      int64       `json:"executions_last_day"` // in the last 24 hours, in whole hours
	FirstSeen    time.Time   `json:"first_seen"`
	LastSeen     time.Time   `json:"last_seen"`
	State        string      `json:"state"` // "" = the audit has not begun
	Verdict      string      `json:"verdict"`
	Trials       int64       `json:"trials"`
	Lower        *float64    `json:"epsilon_lower"`
	Begun        int         `json:"begun"` // how often the evidence began
	Users        []User      `json:"users"`
	History      []Event     `json:"history"` // the latest first
	// Violation is the violation that is not resolved, as in the status; absent = none. Actions are what operators did
	// with it, the latest first, and Accepted is its acceptance, whose date may have passed; nil = it is not accepted.
	Violation json.RawMessage `json:"violation,omitempty"`
	Actions   []Action        `json:"actions,omitempty"`
	Accepted  *Action         `json:"accepted,omitempty"`
	// DataEpoch and EngineEpoch identify the copies and the engine that gave the evidence; "" = not known.
	DataEpoch   string `json:"data_epoch,omitempty"`
	EngineEpoch string `json:"engine_epoch,omitempty"`
}

// User is who ran a query.
type User struct {
	User        string    `json:"user"`
	Database    string    `json:"database"`
	Application string    `json:"application_name"`
	Executions  int64     `json:"executions"`
	FirstSeen   time.Time `json:"first_seen"`
	LastSeen    time.Time `json:"last_seen"`
}

// Event is a change of the state or verdict of an audit.
type Event struct {
	At      time.Time `json:"at"`
	State   string    `json:"state"`
	Verdict string    `json:"verdict"`
	Reason  string    `json:"reason"`
}

// withheldReason replaces a reason that may hold values of rows.
const withheldReason = "withheld: it may hold values, if log.reveal was values at that time"

// WithholdReasons returns the events without the reasons that may hold values of rows.
func WithholdReasons(events []Event) []Event {
	events = slices.Clone(events)
	for i := range events {
		e := &events[i]
		own := e.State == Resolved || e.State == Changed || e.State == ActionReaudit // see Change
		judged := e.State == "decided" && (e.Verdict == "violation" || e.Verdict == "no_evidence")
		if e.Reason != "" && !own && !judged { // it may quote an error of a server
			e.Reason = withheldReason
		}
	}
	return events
}

// What an Action can be.
const (
	ActionAccept    = "accept"    // a violation sends no alert until a date or another engine
	ActionRevoke    = "revoke"    // an operator ended an acceptance
	ActionEnd       = "end"       // the date of an acceptance passed, or the engine changed
	ActionReproduce = "reproduce" // a query was replayed again with fresh trials
	ActionReaudit   = "reaudit"   // the audit begins again
)

// Action is what an operator did with a finding, or the end of an acceptance.
type Action struct {
	At       time.Time  `json:"at"` // by the ledger's clock
	Operator string     `json:"operator"`
	Role     string     `json:"role"` // of the database
	Action   string     `json:"action"`
	Reason   string     `json:"reason"`
	Until    *time.Time `json:"until,omitempty"` // of an acceptance
}

// Change is what happened to an audit: a verdict, a resolution, an event of its history; or that its query was first
// seen.
type Change struct {
	At      time.Time
	Engine  string
	Key     string
	Summary string
	State   string // "first seen" of a query; otherwise as in Event
	Verdict string
	Reason  string
}

// States of a Change, and of an Event, that are none of an audit. Their reasons hold no values.
const (
	FirstSeen = "first seen" // a query whose fingerprint was not known before; of a Change alone
	Resolved  = "resolved"   // a violation
	Changed   = "changed"    // an alarm of the change detector
)

// ID returns the id of the audit.
func (s *Stored) ID() string { return s.Key[:min(12, len(s.Key))] }

// Former is what the ledger had about an audit before it was reproduced. Its JSON form is a contract with scripts.
type Former struct {
	Verdict   string         `json:"verdict"`
	Lower     analysis.Float `json:"epsilon_lower"` // null = none, or deterministic answers
	Trials    int64          `json:"trials"`
	Neighbour string         `json:"neighbour,omitempty"`
}

// standing returns the violation that is not resolved; nil = none.
func (s *Stored) standing() *Standing {
	v := new(Standing)
	if len(s.Violation) == 0 || json.Unmarshal(s.Violation, v) != nil || v.FirstSeen.Equal(time.Time{}) {
		return nil
	}
	return v
}

// Former returns the verdict of the ledger: a violation until it is resolved.
func (s *Stored) Former() Former {
	f := Former{Verdict: cmp.Or(s.Verdict, s.State), Lower: analysis.Float(math.NaN()), Trials: s.Trials}
	if s.Lower != nil {
		f.Lower = analysis.Float(*s.Lower)
	}
	if v := s.standing(); v != nil {
		f = Former{string(analysis.Violation), v.Lower, int64(v.Trials), v.Neighbour}
	}
	return f
}

// Audit returns what the ledger has as an audit, without the reports of the evidence.
func (s *Stored) Audit() Audit {
	report := analysis.Refused(analysis.Claim{Epsilon: math.NaN()}, 0, "")
	report.Verdict, report.Trials = analysis.Verdict(s.Verdict), analysis.Trials{D0: int(s.Trials), D1: int(s.Trials)}
	if s.Lower != nil {
		report.EpsilonLower = analysis.Float(*s.Lower)
	}
	a := Audit{
		ID: s.ID(), Key: s.Key, Group: s.Fingerprint, Summary: s.Summary, State: State(s.State), Verdict: s.Former().Verdict, Report: &report, ClaimRule: s.Rule, Destinations: s.Destinations,
		Seen: uint64(max(0, s.Executions)), FirstSeen: s.FirstSeen, LastSeen: s.LastSeen, Standing: s.standing(), Accepted: s.accepted(), EngineName: s.Engine,
	}
	a.SetClaim(s)
	if v := a.Standing; v != nil {
		a.Neighbour = v.Neighbour
	}
	return a
}

// accepted returns the acceptance of the violation; nil if there is none or its date has passed.
func (s *Stored) accepted() *Accepted {
	c := s.Accepted
	if c == nil || c.Until == nil || !c.Until.After(time.Now()) {
		return nil
	}
	return &Accepted{Operator: c.Operator, At: c.At, Until: *c.Until, Reason: c.Reason}
}

// SetClaim gives the report the claim in the ledger: evidence does not have its source. Of a curve that is refuted, the
// point at which it is comes with the violation or with the evidence.
func (a *Audit) SetClaim(s *Stored) {
	has := a.Report.Claimed
	a.Report.Claimed = analysis.Claimed{Epsilon: analysis.Float(math.NaN()), Source: s.Source, Curve: s.Curve}
	switch v := s.standing(); {
	case s.Curve != "" && has.Curve == s.Curve:
		a.Report.Claimed.Epsilon, a.Report.Claimed.Delta = has.Epsilon, has.Delta
		return
	case s.Curve != "" && v != nil && v.Curve == s.Curve:
		a.Report.Claimed.Epsilon, a.Report.Claimed.Delta = v.Claimed, v.Delta
		return
	}
	if s.Epsilon != nil && s.Delta != nil {
		a.Report.Claimed.Epsilon, a.Report.Claimed.Delta = analysis.Float(*s.Epsilon), *s.Delta
	}
}
