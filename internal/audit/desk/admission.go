package desk

import (
	"fmt"

	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Admission takes captured queries.
type Admission struct {
	*core
	versions *versions
	places   *places
	counts   *counts
	watches  *Watches
}

// Captured counts a captured statement.
func (a *Admission) Captured() { a.counts.captured++ }

// TurnAway counts a statement without a place for its audit, and logs a warning periodically. The zero Query is one
// that is not known.
func (a *Admission) TurnAway(reason string, q capture.Query) { a.counts.turnAway(reason, q) }

// Skip counts a statement that is not audited; the zero Query is one that is not known.
func (a *Admission) Skip(reason string, q capture.Query) { a.counts.skip(reason, q) }

// Arrive finds the audit, with a key and a route, of a recognized statement or creates one. It returns false, without
// effect, if it needs the plan and r has none.
func (a *Admission) Arrive(q capture.Query, r recognize.Recognized, key, route string) bool {
	switch {
	case r.Passed:
		a.counts.count(fmt.Sprintf("%016x", r.Look.Text), false)
		a.counts.turnAway(string(schedule.ShapeSampled), q)
		return true
	case r.Reason != "":
		a.counts.countSkipped(r.Reason)
		a.do(Sampled{Reason: r.Reason, Query: q, Detail: r.Detail, Advice: r.Advice})
		a.do(Refused{r.Reason, q, r.Query.Claim})
		a.counts.logUnlisted(r)
		return true
	}
	if r.Unclaimed != "" && r.Unclaimed != recognize.PolicyAudit {
		a.counts.unclaimed(q, r, route)
		return true
	}
	done, placed := a.placeQuery(q, r, key, route)
	if done {
		a.do(Seen{Key: key, Query: r.Query, Captured: q, Placed: placed, Before: r.Before})
	}
	return done
}

// placeQuery finds the audit of a query or creates one; done is the result of Arrive, placed means that the query has
// an audit.
func (a *Admission) placeQuery(q capture.Query, r recognize.Recognized, key, route string) (done, placed bool) {
	if j := a.job(key); j != nil {
		outdated, due := a.outdated(j), a.due(j)
		if outdated || due {
			if r.Plan == nil {
				return false, false
			}
			if outdated {
				j.restarts++
			} else {
				j.repeats++
				j.previous = j.worst().Verdict
			}
			a.places.again(j, q, r.Plan, r.Edition)
		}
		a.places.controls.follow(j)
		j.answers = read.AddDestinations(j.answers, r.Query.Destinations)
		j.Seen++
		j.LastSeen = q.Completed
		a.counts.count(key, true)
		return true, true
	}
	record := a.places.records.byKey[key]
	if record != nil && !a.versions.outlived(record) {
		record.seen(q.Completed)
		a.counts.count(key, true)
		return true, true
	}
	asked, _ := a.places.asked.Get(key)
	seat := schedule.NewAudit(key, r.Shape, schedule.Owner{User: q.User, Database: q.Database, Route: route})
	seat.Seen, seat.LastSeen, seat.Tried = asked.seen+1, q.Completed, asked.tried && a.opt.Kept
	if record != nil {
		seat.Seen = record.Seen + 1
	}
	switch _, refusal := a.roster.Room(&seat); {
	case refusal != "" && record != nil: // it stays a record
		record.seen(q.Completed)
		a.counts.count(key, true)
		return true, true
	case refusal != "":
		asked.seen++
		a.places.asked.Put(key, asked)
		a.do(Remembered{r.Look, true})
		a.counts.count(key, false)
		a.counts.turnAway(string(refusal), q)
		return true, false
	}
	if r.Plan == nil {
		return false, false
	}
	a.do(Remembered{r.Look, false})
	j := &job{Audit: seat, plan: r.Plan, edition: r.Edition, query: q, answers: r.Query.Destinations}
	a.admit(j)
	if record != nil {
		a.roster.Reopen(record.seat)
		a.places.records.handOver(record, j)
	}
	return true, true
}

// admit adds an audit for which Room has found a place.
func (a *Admission) admit(j *job) {
	j.firstSeen, j.LastSeen = j.query.Completed, j.query.Completed
	a.places.enter(j)
	a.do(Placed{j.storedQuery()})
}

// outdated reports whether a decided audit belongs to copies that no longer exist.
func (a *Admission) outdated(j *job) bool {
	now := a.copies()
	return j.state() == view.Decided && j.Phase() != schedule.Watching && j.copies != "" && now != "" && j.copies != now
}

// due reports whether an audit without a violation was decided so long ago that it is repeated.
func (a *Admission) due(j *job) bool {
	return j.Phase() == schedule.Decided && a.watches.repeatDue(j)
}
