package audit

import (
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// Reasons of evictions, fit for a metric label.
const (
	evictedPlace    = "place"    // another query got its place
	evictedMemory   = "memory"   // the audits exceeded their memory budget
	evictedRecord   = "recorded" // a violation that is kept as a record
	recordsPerAudit = 4          // records of violations that are kept, per place for an audit
)

// demand is what is remembered of a query without an audit.
type demand struct {
	seen  uint64 // times that clients ran it
	tried bool   // it has lost its place after its first trials
}

// warnEvery is how often a condition that persists is logged.
const warnEvery = time.Minute

// forget drops an audit that has left the roster.
func (d *desk) forget(seat *schedule.Audit, reason string) {
	j := d.jobs[seat.Key]
	d.abandon(j)
	delete(d.jobs, seat.Key)
	delete(d.wished, seat.Key)
	d.order = slices.DeleteFunc(d.order, func(o *job) bool { return o == j })
	d.evictions[reason]++
	d.do(counted{evictedCounter, reason})
	if seat.Phase() == schedule.Queued {
		if j.processes == 0 {
			d.do(displaced{seat.Key})
		}
		d.coverage.lose(seat.Key)
		d.asked.Put(seat.Key, demand{seat.Seen, seat.Tried || seat.Trials > 0})
	}
}

// shed evicts audits until the others fit in the memory budget.
func (d *desk) shed() {
	d.giveUpMeasurements()
	n := 0
	for seat := d.roster.Shed(); seat != nil; seat = d.roster.Shed() {
		d.forget(seat, evictedMemory)
		n++
	}
	if n == 0 {
		return
	}
	if counts := d.turned.add(evictedMemory, d.now); counts != nil {
		d.log(zap.WarnLevel, "undecided audits were evicted because the audits exceed their memory budget; raise audit.memory",
			zap.Any("since_last_warning", counts), zap.Int64("audit_bytes", d.roster.Bytes()), zap.Int64("budget_bytes", d.opt.Memory))
	}
}

// retire replaces violations that occupy too many of the places by records.
func (d *desk) retire() {
	for seat := d.roster.Retire(); seat != nil; seat = d.roster.Retire() {
		j := d.jobs[seat.Key]
		d.stand(j)
		d.callsOf(&j.life, j.plan)
		lost := d.records.add(&seatedRecord{Record: j.record(), seat: seat, standing: j.life.standing, life: j.life, epoch: j.epoch})
		d.forget(seat, evictedRecord)
		d.log(zap.WarnLevel, "violations hold more than half of the places for audits: one is evicted, and a record of it is kept", zap.String("audit", j.id))
		if lost == nil {
			continue
		}
		d.roster.Reopen(lost.seat)
		d.do(counted{lostCounter, ""})
		d.log(zap.ErrorLevel, "the oldest record of a violation is dropped because there are too many; its alert is still valid",
			zap.String("audit", lost.ID), zap.String("db.query.summary", lost.Summary))
	}
}

func (j *job) record() *view.Record { // with Auditor.mu held
	i := evidence.Worst(j.reports)
	r := j.reports[i]
	c := &view.Record{
		ID: j.id, Group: j.plan.Group, Summary: j.plan.Summary, User: j.Owner.User, Database: j.Owner.Database, Route: j.Owner.Route,
		Claimed: r.Claimed.Epsilon, Lower: r.EpsilonLower, Trials: r.Trials.D0, Seen: j.Seen, FirstSeen: j.firstSeen, LastSeen: j.LastSeen,
	}
	if i < len(j.worlds) {
		c.Neighbour = j.worlds[i].Schema
	}
	if s := j.violation(); s != nil {
		c.Standing = s
		c.Claimed, c.Lower, c.Trials, c.Neighbour = s.Claimed, s.Lower, s.Trials, s.Neighbour
	}
	return c
}

// records are the violations whose audits were evicted, oldest first.
type records struct {
	most  int
	byKey map[string]*seatedRecord
	order []*seatedRecord
}

// seatedRecord is a Record with what its query needs to be audited again: the place of its audit in the roster, the
// violation, and the engine and the copies of its evidence.
type seatedRecord struct {
	*view.Record
	seat     *schedule.Audit
	standing *view.Standing
	life     life
	epoch    string
}

// outlived reports whether the engine or the copies changed since a record's violation was found: its query is
// audited again when it is run again.
func (d *desk) outlived(s *seatedRecord) bool {
	now := d.epochOf(&s.life, nil) // the calls are known
	return now != "" && s.life.Engine != "" && now != s.life.Engine || s.epoch != "" && d.copies() != "" && d.copies() != s.epoch
}

// handOver gives a new audit of a recorded violation's query the violation, which stays one until the audit resolves
// it.
func (r *records) handOver(s *seatedRecord, j *job) {
	delete(r.byKey, s.seat.Key)
	r.order = slices.DeleteFunc(r.order, func(o *seatedRecord) bool { return o == s })
	j.firstSeen, j.life.Began = s.FirstSeen, s.life.Began+1
	j.setStanding(s.standing)
}

// add stores a record, and returns the one that is dropped for it, or nil.
func (r *records) add(s *seatedRecord) (lost *seatedRecord) {
	if r.byKey == nil {
		r.byKey = map[string]*seatedRecord{}
	}
	r.byKey[s.seat.Key] = s
	if r.order = append(r.order, s); len(r.order) > r.most {
		lost, r.order = r.order[0], slices.Delete(r.order, 0, 1)
		delete(r.byKey, lost.seat.Key)
	}
	return lost
}

// seen records that a client ran the query.
func (s *seatedRecord) seen(at time.Time) {
	s.Seen++
	s.LastSeen = at
}

// list returns copies of the records.
func (r *records) list() []view.Record {
	out := make([]view.Record, len(r.order))
	for i, c := range r.order {
		out[i] = *c.Record
	}
	return out
}

// turnedAway counts the queries turned away between two warnings.
type turnedAway struct {
	counts map[string]uint64
	warned time.Time
}

// add counts a query. If the next warning is due it returns the counts since the last one, otherwise nil.
func (t *turnedAway) add(reason string, now time.Time) map[string]uint64 {
	if t.counts == nil {
		t.counts = map[string]uint64{}
	}
	t.counts[reason]++
	if !t.warned.IsZero() && now.Sub(t.warned) < warnEvery {
		return nil
	}
	counts := maps.Clone(t.counts)
	clear(t.counts)
	t.warned = now
	return counts
}
