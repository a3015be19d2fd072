package desk

import (
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// record returns the record of a job whose violation loses its place.
func (j *job) record() *view.Record {
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
		c.Curve, c.Delta = s.Curve, s.Delta
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
	copies   string
}

// outlived reports whether the engine or the copies changed since a record's violation was found: its query is
// audited again when it is run again.
func (e *versions) outlived(s *seatedRecord) bool {
	now := e.versionOf(&s.life, nil) // the calls are known
	return now != "" && s.life.Engine != "" && now != s.life.Engine || s.copies != "" && e.copies() != "" && e.copies() != s.copies
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
