package read

import (
	"github.com/dpwatch/dpwatch/analysis"
)

// Explanation is what is known about one audit, in five answers. Its JSON form is a contract with scripts.
type Explanation struct {
	ID      string           `json:"id"`
	Key     string           `json:"key"`
	Engine  string           `json:"engine,omitempty"`
	Summary string           `json:"summary"`
	Verdict string           `json:"verdict"` // of the audit, or its state
	Claimed analysis.Claimed `json:"claimed"`
	Rule    string           `json:"claim_rule,omitempty"`
	// Destinations are where answers went.
	Destinations []string `json:"destinations,omitempty"`

	HowBad  []string `json:"how_bad"`
	What    []string `json:"what_gives_it_away"`
	Why     []string `json:"why_probably"`
	Who     Who      `json:"who"`
	WhatNow []string `json:"what_now"`
	// NotProven lists what the audit does not show.
	NotProven []string `json:"not_proven"`

	Statement string `json:"statement,omitempty"` // as captured, with its literals; only if it may be shown
	// Parameters are the bound parameters of Statement in their order; those in the binary format of an unknown type as
	// \x and hexadecimal digits.
	Parameters []string        `json:"parameters,omitempty"`
	Then       []Following     `json:"then,omitempty"` // further statements of a sequence
	SQL        *SQLPair        `json:"sql,omitempty"`  // likewise
	Accepted   *Accepted       `json:"accepted,omitempty"`
	Actions    []Action        `json:"actions,omitempty"` // the latest first
	Report     analysis.Report `json:"report"`
	Audit      Audit           `json:"audit,omitzero"`    // everything about the audit; only with dpwatch explain --full
	History    []Event         `json:"history,omitempty"` // of its states, the latest first; likewise
	Notes      []string        `json:"-"`                 // what could not be read

	row     Audit
	history []Event
}

// Full adds Audit.
func (x Explanation) Full() Explanation {
	x.Audit, x.History = x.row, x.history
	return x
}

// Following is a statement of a sequence after the first one; see Explanation.
type Following struct {
	Statement  string   `json:"statement"`
	Parameters []string `json:"parameters,omitempty"`
}

// ExplainRow answers the five questions about an audit. stored is nil if the ledger could not be read.
func ExplainRow(a *Audit, stored *Stored) Explanation {
	r := a.Result()
	x := Explanation{
		ID: a.ID, Key: a.Key, Engine: a.Route, Summary: a.Summary, Verdict: a.Verdict, Claimed: r.Claimed, Rule: a.ClaimRule, Destinations: a.Destinations,
		Accepted: a.Accepted, Report: r, SQL: a.SQL, Who: whoOf(a, stored), row: *a,
	}
	if stored != nil {
		x.Engine, x.Actions, x.history = stored.Engine, stored.Actions, WithholdReasons(stored.History)
		x.Destinations = AddDestinations(x.Destinations, stored.Destinations)
		if x.Accepted == nil {
			x.Accepted = stored.accepted()
		}
	}
	x.HowBad, x.What, x.Why = reportAnswers(a, r)
	if a.Timing != nil {
		x.What = append(x.What, "Latency: "+TimingText(a.Timing))
	}
	x.WhatNow, x.NotProven = x.whatNow(), notProven(a.Verdict, r)
	return x
}
