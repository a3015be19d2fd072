package read

import (
	"fmt"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
)

// Who is who is affected by a finding, and who asked the query. It holds pseudonyms of units, never their keys.
type Who struct {
	Neighbour string `json:"neighbour"` // with the strongest evidence
	Units     []Unit `json:"units"`     // that were tried
	Leaking   int    `json:"leaking"`   // of Units, those with a violation
	// Random are the units that were chosen at random, and Share the interval for the share of all units that leak;
	// null without random units.
	Random        int         `json:"random"`
	RandomLeaking int         `json:"random_leaking"`
	Share         *[2]float64 `json:"leaking_share"`
	Unknown       string      `json:"choice_unknown,omitempty"` // why it is not known how the units were chosen

	Executions int64     `json:"executions"`
	LastDay    *int64    `json:"executions_last_day,omitempty"` // in the last 24 hours, in whole hours
	FirstSeen  time.Time `json:"first_seen"`
	LastSeen   time.Time `json:"last_seen"`
	Users      []User    `json:"users"` // those with the most executions
}

// Unit is a unit that was tried: a neighbour of D0.
type Unit struct {
	Schema    string           `json:"schema"`
	Pseudonym string           `json:"pseudonym,omitempty"`
	Rule      string           `json:"rule,omitempty"`    // that chose it
	Value     string           `json:"value,omitempty"`   // of the rule; only if it is revealed
	Random    bool             `json:"-"`                 // the rule chooses at random
	Remarks   []string         `json:"remarks,omitempty"` // what else than the unit's own rows the neighbour lacks, and where it names the unit
	Verdict   analysis.Verdict `json:"verdict"`
	Lower     analysis.Float   `json:"epsilon_lower"`
}

// shareConfidence is the confidence of Who.Share.
const shareConfidence = 0.95

func whoOf(a *Audit, s *Stored) Who {
	w := Who{Neighbour: a.Neighbour, Units: []Unit{}, Executions: int64(a.Seen), FirstSeen: a.FirstSeen, LastSeen: a.LastSeen, Users: []User{}}
	for _, n := range a.Neighbours {
		w.Units = append(w.Units, Unit{Schema: n.Schema, Verdict: n.Verdict, Lower: n.Lower})
	}
	if len(w.Units) == 0 && a.Neighbour != "" {
		r := a.Result()
		w.Units = append(w.Units, Unit{Schema: a.Neighbour, Verdict: r.Verdict, Lower: r.EpsilonLower})
	}
	for _, u := range w.Units {
		if u.Verdict == analysis.Violation {
			w.Leaking++
		}
	}
	w.Unknown = "the records of the neighbours are read with --config only"
	if s != nil {
		w.Executions, w.FirstSeen, w.LastSeen, w.Users, w.LastDay = s.Executions, s.FirstSeen, s.LastSeen, s.Users, &s.LastDay
	} else if a.User != "" {
		w.Users = []User{{User: a.User, Database: a.Database, Application: a.App, Executions: int64(a.Seen), FirstSeen: a.FirstSeen, LastSeen: a.LastSeen}}
	}
	return w
}

// Choose adds how the units were chosen, and the share of all units that leak if some were chosen at random.
func (w *Who) Choose(members map[string]Unit, unknown string) {
	w.Unknown = unknown
	for i := range w.Units {
		u := &w.Units[i]
		m := members[u.Schema]
		u.Pseudonym, u.Rule, u.Value, u.Remarks = m.Pseudonym, m.Rule, m.Value, m.Remarks
		if m.Random {
			w.Random++
			if u.Verdict == analysis.Violation {
				w.RandomLeaking++
			}
		}
	}
	if w.Random > 0 {
		low, high := analysis.ClopperPearson(w.RandomLeaking, w.Random, 1-shareConfidence)
		w.Share = &[2]float64{low, high}
	}
}

// lines describes the units and the users of a query with a claim, which may be NaN.
func (w *Who) lines(claim analysis.Float) []string {
	all := []string{fmt.Sprintf("Units tried: %d; with a violation: %d.", len(w.Units), w.Leaking)}
	for _, u := range w.Units {
		text := u.Schema + ": no verdict"
		if u.Verdict != "" {
			text = u.Schema + ": " + show.Words(string(u.Verdict))
		}
		if u.Verdict != "" && (u.Verdict != analysis.Violation || !(u.Lower <= claim)) { // that of answers that never vary has no bound
			text += ", epsilon lower bound " + analysis.LowerText(u.Lower, claim)
		}
		if u.Rule != "" {
			text += fmt.Sprintf("; unit %s, chosen by the rule %s", u.Pseudonym, u.Rule)
		}
		if u.Value != "" {
			text += " (" + u.Value + ")"
		}
		all = append(all, "  "+text)
		for _, remark := range u.Remarks {
			all = append(all, "    "+remark)
		}
	}
	all = append(all, w.Chosen())
	text := fmt.Sprintf("Clients ran the query %d times, first %s, last %s", w.Executions, show.Moment(w.FirstSeen), show.Moment(w.LastSeen))
	if w.LastDay != nil {
		text += fmt.Sprintf("; %d times in the last 24 hours", *w.LastDay)
	}
	all = append(all, text+".")
	for _, u := range slices.Clone(w.Users) {
		all = append(all, fmt.Sprintf("  %s, application %q, database %s: %d times, first %s, last %s", u.User, u.Application, u.Database, u.Executions, show.Moment(u.FirstSeen), show.Moment(u.LastSeen)))
	}
	return all
}

// Chosen says how the units were chosen, and which share of all units leaks.
func (w *Who) Chosen() string {
	switch {
	case w.Share != nil:
		return fmt.Sprintf("Of %d units chosen at random, %d leak: between %.1f %% and %.1f %% of all units at confidence %g, where a unit without a violation counts as one that does not leak.",
			w.Random, w.RandomLeaking, 100*w.Share[0], 100*w.Share[1], shareConfidence)
	case w.Unknown != "":
		return "How the units were chosen is not known: " + w.Unknown + "."
	}
	return "No unit was chosen at random, so the share of all units that leak is not known: add the rule random to neighbours.choose."
}
