package desk

import (
	"maps"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// Overview is what is shown of all audits.
type Overview struct {
	*core
	acceptances *Acceptances
	places      *places
	counts      *counts
	controls    *Controls
}

// Snapshot is all audits at one time. It does not change, and needs no Desk.
type Snapshot struct {
	now      time.Time
	shadowUp bool
	audits   []*shown                  // in order of admission
	accepted map[string]*view.Accepted // the acceptances in force, by key of the audit
	queue    schedule.Queue            // of the audits that wait
}

// shown is what is shown of one audit, until the audit changes. It does not change itself.
type shown struct {
	entry      view.Entry // without WaitingFor and Accepted
	queued     bool
	since      time.Time // it waits
	notBefore  time.Time
	ledgerAway bool
	background bool
}

// Refresh makes anew what is shown of those of some audits that have changed.
func (o *Overview) Refresh(keys []string) {
	for _, key := range keys {
		if j := o.jobs[key]; j != nil {
			o.show(j)
		}
	}
}

// Show returns what a status shows besides the audits, and the audits.
func (o *Overview) Show() (view.Status, *Snapshot) {
	s := view.Status{
		At: o.now, Captured: o.counts.captured, Skipped: maps.Clone(o.counts.skipped), Evicted: maps.Clone(o.places.evictions), Faults: o.faults,
		Memory: view.Memory{Audits: o.roster.Bytes(), Budget: o.opt.Memory}, Observe: o.opt.Observe, Records: o.places.records.list(),
	}
	s.Coverage.Queries, s.Coverage.AuditedQueries = o.counts.covered()
	s.Coverage.Owners = o.roster.Owners()
	if !o.opt.Observe {
		f := o.controls.FalseAlarms()
		s.FalseAlarms = &f
	}
	all := &Snapshot{
		now: o.now, shadowUp: o.shadowUp, audits: make([]*shown, len(o.order)), accepted: map[string]*view.Accepted{}, queue: o.roster.Queue(o.now),
	}
	for i, j := range o.order {
		all.audits[i] = o.show(j)
	}
	for key := range o.acceptances.accepted {
		if c := o.acceptances.acceptance(key); c != nil {
			if all.accepted[key] = c; s.Accepted == nil {
				s.Accepted = map[string]view.Accepted{}
			}
			s.Accepted[ShortID(key)] = *c
		}
	}
	for i := range s.Records {
		s.Records[i].Accepted = all.accepted[o.places.records.order[i].seat.Key]
	}
	return s, all
}

// Entries returns what the status shows of the audits, those that were seen first first. common is why all audits
// wait; "" = for their turns alone.
func (s *Snapshot) Entries(common string) []view.Entry {
	waiting := s.queue.Keys()
	position := make(map[string]int, len(waiting)) // from 1 on
	for i, key := range waiting {
		position[key] = i + 1
	}
	all := make([]view.Entry, len(s.audits))
	for i, x := range s.audits {
		all[i] = x.entry
		e := &all[i]
		if e.Status() == finding.Open {
			e.Accepted = s.accepted[e.Key]
		}
		if x.queued {
			e.WaitingFor = s.waitingFor(x, common)
			if e.WaitingFor.Reason == WaitsForTurn || e.WaitingFor.Reason == WaitsForBudget {
				e.WaitingFor.Position, e.WaitingFor.Of = position[e.Key], len(position)
			}
		}
	}
	slices.SortStableFunc(all, func(x, y view.Entry) int { return x.FirstSeen.Compare(y.FirstSeen) })
	return all
}

// show returns what is shown of a job.
func (o *Overview) show(j *job) *shown {
	if j.shown == nil {
		j.shown = o.newShown(j)
		j.shown.entry.Encoding = &view.Encoding{}
	}
	return j.shown
}

func (o *Overview) newShown(j *job) *shown {
	return &shown{
		entry: o.entry(j), queued: j.Phase() == schedule.Queued, since: j.Since(), notBefore: j.NotBefore, ledgerAway: j.ledgerAway, background: j.Background,
	}
}

// entry returns what the status shows of a job; little if that panics, which is logged once.
func (o *Overview) entry(j *job) (e view.Entry) {
	if !j.unshown {
		j.unshown = o.opt.Contain("show audit "+j.id, func() error { e = j.entry(o.opt); return nil }) != nil
	}
	if j.unshown {
		r := o.emptyReport(j.plan, ErrInternal.Error())
		e = view.Entry{ID: j.id, Key: j.Key, Route: j.Owner.Route, State: j.state(), Trouble: ErrInternal.Error(), Verdict: string(r.Verdict), Report: &r, FirstSeen: j.firstSeen, LastSeen: j.LastSeen}
	}
	return e
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

// waitingFor returns why an audit waits.
func (s *Snapshot) waitingFor(x *shown, common string) *view.WaitingFor {
	f := &view.WaitingFor{Reason: WaitsForTurn, Since: x.since}
	switch {
	case x.notBefore.After(s.now):
		if f.Reason = waitsForRetries; x.ledgerAway {
			f.Reason = WaitsForLedger
		} else if !s.shadowUp {
			f.Reason = WaitsForShadow
		}
		f.Until = x.notBefore
	case common != "":
		f.Reason = common
	case x.background:
		f.Reason = waitsForShare
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
func (o *Overview) Keys() []string {
	keys := make([]string, len(o.order))
	for i, j := range o.order {
		keys[i] = j.Key
	}
	return keys
}
