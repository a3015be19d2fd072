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

// Show returns what a status shows besides the audits, and the audits as they wait: those come from Entries.
func (o *Overview) Show() (view.Status, *Waiting) {
	s := view.Status{
		At: o.now, Captured: o.counts.captured, Skipped: maps.Clone(o.counts.skipped), Evicted: maps.Clone(o.places.evictions), Faults: o.faults,
		Memory: view.Memory{Audits: o.roster.Bytes(), Budget: o.opt.Memory}, Observe: o.opt.Observe, Records: o.places.records.list(),
	}
	s.Coverage.Queries, s.Coverage.AuditedQueries = o.counts.covered()
	s.Coverage.Owners = o.roster.Owners()
	o.showAcceptances(&s)
	w := &Waiting{Keys: make([]string, len(o.order)), queue: o.roster.Queue(o.now)}
	for i, j := range o.order {
		w.Keys[i] = j.Key
	}
	return s, w
}

// Waiting is which audits there are, and in which order they wait for their turns.
type Waiting struct {
	Keys     []string // of all audits, in order of admission
	queue    schedule.Queue
	position map[string]int // in the queue, from 1 on, by key
}

// Sort finds the positions of the audits. It takes long, and needs no Desk.
func (w *Waiting) Sort() {
	keys := w.queue.Keys()
	w.position = make(map[string]int, len(keys))
	for i, key := range keys {
		w.position[key] = i + 1
	}
}

// Entries returns what the status shows of audits. w was sorted. common is why all audits wait; "" = for their turns
// alone. An audit that is not there any more has no entry.
func (o *Overview) Entries(keys []string, w *Waiting, common string) []view.Entry {
	all := make([]view.Entry, 0, len(keys))
	for _, key := range keys {
		j := o.jobs[key]
		if j == nil {
			continue
		}
		e := o.entry(j)
		if e.Status() == finding.Open {
			e.Accepted = o.acceptances.acceptance(key)
		}
		if j.Phase() == schedule.Queued {
			e.WaitingFor = o.waitingFor(j, w, common)
		}
		all = append(all, e)
	}
	return all
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

// showAcceptances adds to a status which violations are accepted, besides those of audits.
func (o *Overview) showAcceptances(s *view.Status) {
	a := o.acceptances
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

// Reasons why an audit waits, besides its turn. The caller of Entries knows those that all audits have in common.
const (
	WaitsForTurn    = "turn"
	WaitsForBudget  = "budget"
	WaitsForLedger  = "ledger"
	WaitsForShadow  = "shadow_database"
	WaitsForGate    = "replays_held" // paused, outside the hours, or load
	waitsForShare   = "watch_share"
	waitsForRetries = "retry" // its replays failed
)

// waitingFor returns why a job waits.
func (o *Overview) waitingFor(j *job, w *Waiting, common string) *view.WaitingFor {
	f := &view.WaitingFor{Reason: WaitsForTurn, Since: j.Since(), Position: w.position[j.Key], Of: len(w.position)}
	switch {
	case j.NotBefore.After(o.now):
		if f.Reason = waitsForRetries; j.ledgerAway {
			f.Reason = WaitsForLedger
		} else if !o.shadowUp {
			f.Reason = WaitsForShadow
		}
		f.Until = j.NotBefore
	case common != "":
		f.Reason = common
	case j.Background:
		f.Reason = waitsForShare
	}
	if f.Reason != WaitsForTurn && f.Reason != WaitsForBudget {
		f.Position, f.Of = 0, 0
	}
	return f
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
