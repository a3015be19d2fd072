package desk

import (
	"maps"
	"slices"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// Overview is what is shown of all audits.
type Overview struct {
	*core
	acceptances *Acceptances
	places      *places
	counts      *counts
}

// Show returns the parts of a status that the audits make up. common is why all audits wait; "" = for their turns
// alone.
func (o *Overview) Show(common string) view.Status {
	s := view.Status{
		At: o.now, Captured: o.counts.captured, Skipped: maps.Clone(o.counts.skipped), Evicted: maps.Clone(o.places.evictions), Faults: o.faults,
		Memory: view.Memory{Audits: o.roster.Bytes(), Budget: o.opt.Memory}, Observe: o.opt.Observe,
		Records: o.places.records.list(), Audits: make([]view.Entry, len(o.order)),
	}
	s.Coverage.Queries, s.Coverage.AuditedQueries = o.counts.covered()
	s.Coverage.Owners = o.roster.Owners()
	waiting := o.waiting(common)
	for i, j := range o.order {
		s.Audits[i] = o.entry(j)
		s.Audits[i].WaitingFor = waiting[j.Key]
	}
	o.showAcceptances(&s)
	slices.SortStableFunc(s.Audits, func(x, y view.Entry) int { return x.FirstSeen.Compare(y.FirstSeen) })
	return s
}

// entry returns what the status shows of a job; little if that panics, which is logged once.
func (o *Overview) entry(j *job) (e view.Entry) {
	if !j.unshown {
		j.unshown = o.opt.Contain("show audit "+j.id, func() error { e = j.entry(o.opt); return nil }) != nil
	}
	if j.unshown {
		r := o.emptyReport(j.plan, turn.ErrInternal.Error())
		e = view.Entry{ID: j.id, Key: j.Key, Route: j.Owner.Route, State: j.state(), Trouble: turn.ErrInternal.Error(), Verdict: string(r.Verdict), Report: &r, FirstSeen: j.firstSeen, LastSeen: j.LastSeen}
	}
	return e
}

// showAcceptances adds to a status which violations are accepted.
func (o *Overview) showAcceptances(s *view.Status) {
	a := o.acceptances
	for i := range s.Audits {
		if e := &s.Audits[i]; e.Status() == finding.Open {
			e.Accepted = a.acceptance(e.Key)
		}
	}
	for i := range s.Records {
		s.Records[i].Accepted = a.acceptance(o.places.records.order[i].seat.Key)
	}
	for key := range a.accepted {
		if c := a.acceptance(key); c != nil {
			if s.Accepted == nil {
				s.Accepted = map[string]view.Accepted{}
			}
			s.Accepted[ShortID(key)] = *c
		}
	}
}

// Reasons why an audit waits, besides its turn. The caller of Show knows those that all audits have in common.
const (
	WaitsForTurn    = "turn"
	WaitsForBudget  = "budget"
	WaitsForLedger  = "ledger"
	WaitsForShadow  = "shadow_database"
	WaitsForGate    = "replays_held" // paused, outside the hours, or load
	waitsForShare   = "watch_share"
	waitsForRetries = "retry" // its replays failed
)

// waiting returns why audits wait, by key.
func (o *Overview) waiting(common string) map[string]*view.WaitingFor {
	order := o.roster.Order(o.now)
	position := map[string]int{}
	for i, seat := range order {
		position[seat.Key] = i + 1
	}
	all := map[string]*view.WaitingFor{}
	for _, j := range o.order {
		if j.Phase() != schedule.Queued {
			continue
		}
		w := &view.WaitingFor{Reason: WaitsForTurn, Since: j.Since(), Position: position[j.Key], Of: len(order)}
		switch {
		case j.NotBefore.After(o.now):
			if w.Reason = waitsForRetries; j.ledgerAway {
				w.Reason = WaitsForLedger
			} else if !o.shadowUp {
				w.Reason = WaitsForShadow
			}
			w.Until = j.NotBefore
		case common != "":
			w.Reason = common
		case j.Background:
			w.Reason = waitsForShare
		}
		if w.Reason != WaitsForTurn && w.Reason != WaitsForBudget {
			w.Position, w.Of = 0, 0
		}
		all[j.Key] = w
	}
	return all
}

// Out returns how many turns workers have.
func (o *Overview) Out() (n int) {
	for _, j := range o.order {
		if j.given != nil {
			n++
		}
	}
	return n
}

// Keys returns the keys of all audits.
func (o *Overview) Keys() []string { return slices.Collect(maps.Keys(o.jobs)) }
