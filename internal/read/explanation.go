package read

import (
	"encoding/json"

	"github.com/dpwatch/dpwatch/analysis"
)

// Explanation is what is known about one audit, in five answers. Its JSON form is a contract with scripts.
type Explanation struct {
	Audit  Audit
	Ledger Stored // the zero value if the ledger was not read

	HowBad  []string
	What    []string // gives it away
	Why     []string // probably
	Who     Who
	WhatNow []string
	// NotProven lists what the audit does not show.
	NotProven []string
	Notes     []string // what could not be read
	Asked     Asked
	Revealed  bool // the answers may hold values of rows
	Full      bool // everything about the audit is written: dpwatch explain --full
}

// Asked is what a client asked, with its literals; empty if it may not be shown.
type Asked struct {
	Statement string `json:"statement,omitempty"` // as captured
	// Parameters are the bound parameters of Statement in their order; those in the binary format of an unknown type as
	// \x and hexadecimal digits.
	Parameters []string    `json:"parameters,omitempty"`
	Then       []Following `json:"then,omitempty"` // further statements of a sequence
}

// Following is a statement of a sequence after the first one.
type Following struct {
	Statement  string   `json:"statement"`
	Parameters []string `json:"parameters,omitempty"`
}

// Explain answers the five questions about an audit. stored is nil if the ledger could not be read.
func Explain(a Audit, stored *Stored) Explanation {
	a.EngineName = a.Route
	if stored != nil {
		a.EngineName, a.Destinations = stored.Engine, AddDestinations(a.Destinations, stored.Destinations)
		if a.Accepted == nil {
			a.Accepted = stored.accepted()
		}
	}
	r := a.Result()
	x := Explanation{Audit: a, Who: whoOf(&a, stored)}
	if stored != nil {
		x.Ledger = *stored
	}
	x.HowBad, x.What, x.Why = reportAnswers(&a, r)
	x.WhatNow, x.NotProven = whatNow(&a), notProven(a.Verdict, r)
	return x
}

// MarshalJSON writes the contract with scripts.
func (x Explanation) MarshalJSON() ([]byte, error) {
	a, r := &x.Audit, x.Audit.Result()
	out := struct {
		ID           string           `json:"id"`
		Key          string           `json:"key"`
		Engine       string           `json:"engine,omitempty"`
		Summary      string           `json:"summary"`
		Verdict      string           `json:"verdict"` // of the audit, or its state
		Claimed      analysis.Claimed `json:"claimed"`
		Rule         string           `json:"claim_rule,omitempty"`
		Destinations []string         `json:"destinations,omitempty"`
		HowBad       []string         `json:"how_bad"`
		What         []string         `json:"what_gives_it_away"`
		Why          []string         `json:"why_probably"`
		Who          Who              `json:"who"`
		WhatNow      []string         `json:"what_now"`
		NotProven    []string         `json:"not_proven"`
		Asked
		SQL      *SQLPair        `json:"sql,omitempty"`
		Accepted *Accepted       `json:"accepted,omitempty"`
		Actions  []Action        `json:"actions,omitempty"` // the latest first
		Report   analysis.Report `json:"report"`
		Audit    any             `json:"audit,omitempty"`   // everything about the audit; only with --full
		History  []Event         `json:"history,omitempty"` // of its states, the latest first; likewise
	}{
		a.ID, a.Key, a.EngineName, a.Summary, a.Verdict, r.Claimed, a.ClaimRule, a.Destinations,
		x.HowBad, x.What, x.Why, x.Who, x.WhatNow, x.NotProven, x.Asked, a.SQL, a.Accepted, x.Ledger.Actions, r, nil, nil,
	}
	if x.Full {
		out.Audit, out.History = a.asInStatus(), WithholdReasons(x.Ledger.History)
	}
	return json.Marshal(out)
}
