package audit

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Submit takes one captured query: it recognizes it as that of an audit, admits a new audit, or counts it as skipped.
// It parses SQL that it has not seen recently, and hostile text can crash the parser: call it only in a process that
// may crash. With Options.Renew and Options.Ledger it waits until Run has called them once.
func (a *Auditor) Submit(q capture.Query) {
	a.submit(inbox.Arrival{Query: q, Look: inbox.LookAt(a.seed, q)})
}

func (a *Auditor) submit(x inbox.Arrival) {
	<-a.catalogs.Informed()
	<-a.keeper.Restored
	if a.contain("submit a query", func() error { a.takeIn(x); return nil }) != nil {
		a.locked(func() { a.skip(recognize.SkippedPanic, x.Query) })
	}
}

// takeIn recognizes a query and places it.
func (a *Auditor) takeIn(x inbox.Arrival) {
	if len(x.Query.Then) == 0 {
		a.metrics.captured.Inc()
	}
	r := a.recognizer.Recognize(x.Query, x.Look)
	if len(x.Query.Then) == 0 {
		a.mu.Lock()
		a.captured++
		a.mu.Unlock()
	}
	if !a.place(x.Query, r) {
		a.place(x.Query, a.recognizer.Parse(x.Query))
	}
	a.follow(x.Query, r)
}

// place finds the audit of a recognized statement or creates one. It returns false, without effect, if it needs the
// plan and r has none.
func (a *Auditor) place(q capture.Query, r recognize.Recognized) (done bool) {
	key, route := identity(&a.opt, q, r.Key)
	a.locked(func() { done = a.arrive(q, r, key, route) })
	return done
}

// arrive is place for the query of an audit with a key and a route.
func (d *desk) arrive(q capture.Query, r recognize.Recognized, key, route string) bool {
	switch {
	case r.Passed:
		d.count(fmt.Sprintf("%016x", r.Look.Text), false)
		d.turnAway(string(schedule.ShapeSampled), q)
		return true
	case r.Reason != "":
		d.countSkipped(r.Reason)
		d.do(sampled{reason: r.Reason, query: q, detail: r.Detail, advice: r.Advice})
		d.do(refused{r.Reason})
		d.logUnlisted(r)
		return true
	}
	if r.Unclaimed != "" && r.Unclaimed != recognize.PolicyAudit {
		d.unclaimed(q, r)
		return true
	}
	done, placed := d.placeQuery(q, r, key, route)
	if done && len(q.Then) == 0 { // a sequence is no execution of its own
		d.do(seen{key: key, query: r.Query, captured: q, placed: placed, before: r.Before})
	}
	return done
}

// placeQuery finds the audit of a query or creates one; done is the result of place, placed means that the query has
// an audit.
func (d *desk) placeQuery(q capture.Query, r recognize.Recognized, key, route string) (done, placed bool) {
	if j := d.jobs[key]; j != nil {
		outdated, due := d.outdated(j), d.due(j)
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
			d.again(j, q, r.Plan, r.Edition)
		}
		j.answers = read.AddDestinations(j.answers, r.Query.Destinations)
		j.Seen++
		j.LastSeen = q.Completed
		d.count(key, true)
		return true, true
	}
	record := d.records.byKey[key]
	if record != nil && !d.outlived(record) {
		record.seen(q.Completed)
		d.count(key, true)
		return true, true
	}
	asked, _ := d.asked.Get(key)
	seat := schedule.Audit{
		Key: key, Shape: r.Shape, Owner: schedule.Owner{User: q.User, Database: q.Database, Route: route},
		Seen: asked.seen + 1, LastSeen: q.Completed, Tried: asked.tried && d.opt.Ledger != nil,
	}
	if record != nil {
		seat.Seen = record.Seen + 1
	}
	switch _, refusal := d.roster.Room(&seat); {
	case refusal != "" && record != nil: // it stays a record
		record.seen(q.Completed)
		d.count(key, true)
		return true, true
	case refusal != "":
		asked.seen++
		d.asked.Put(key, asked)
		d.do(remembered{r.Look, true})
		d.count(key, false)
		d.turnAway(string(refusal), q)
		return true, false
	}
	if r.Plan == nil {
		return false, false
	}
	d.do(remembered{r.Look, false})
	j := &job{Audit: seat, plan: r.Plan, edition: r.Edition, query: q, answers: r.Query.Destinations}
	d.admit(j)
	if record != nil {
		d.roster.Reopen(record.seat)
		d.records.handOver(record, j)
	}
	return true, true
}

// admit adds an audit for which Room has found a place.
func (d *desk) admit(j *job) {
	j.firstSeen, j.LastSeen = j.query.Completed, j.query.Completed
	d.enter(j)
	d.do(placed{j.storedQuery()})
}

// enter adds an audit for which Room has found a place.
func (d *desk) enter(j *job) {
	j.id, j.admitted = shortID(j.Key), d.wall
	j.reports = append(j.reports, d.emptyReport(j.plan, "no trials"))
	j.hoisting = d.noHoisting()
	j.Bytes = j.size()
	evicted, refusal := d.roster.Admit(&j.Audit, d.now)
	if refusal != "" { // impossible: Room was called with the lock held
		d.turnAway(string(refusal), j.query)
		return
	}
	if evicted != nil {
		d.forget(evicted, evictedPlace)
	}
	d.jobs[j.Key] = j
	d.order = append(d.order, j)
	d.count(j.Key, true)
	d.shed()
	d.do(wake{})
}

// again restarts a decided audit with a plan, and the edition of the catalogs with which it was made.
func (d *desk) again(j *job, q capture.Query, plan *rewrite.Plan, edition uint64) {
	d.stand(j)
	if plan != j.plan {
		j.setPlan(plan, edition)
		j.admitted = d.wall
	}
	j.query, j.worlds, j.reported, j.evidence, j.trouble, j.epoch = q, nil, nil, nil, "", ""
	j.hoisting = d.noHoisting()
	j.life.Engine, j.life.Differ, j.Measuring = "", nil, false
	j.confirming, j.suspected, j.doubted = false, 0, false
	j.watch = watch{}
	j.reports, j.partitions = append(j.reports[:0:0], d.emptyReport(plan, "no trials")), 0
	d.roster.Restart(&j.Audit, d.now)
	d.roster.Resize(&j.Audit, j.size())
	d.do(wake{})
}

// skippedBacklog is the reason of queries that arrived faster than they were recognized.
const skippedBacklog = "backlog"

// skipReasons returns every reason for skipping a statement.
func skipReasons() []string {
	all := []string{recognize.SkippedPanic, recognize.SkippedOther, recognize.SkippedUnevaluated, skippedBacklog, skippedUnclaimed}
	for _, r := range reasons.All() {
		all = append(all, string(r))
	}
	for _, r := range schedule.Refusals() {
		all = append(all, string(r))
	}
	return all
}

// skip counts a statement that is not audited; the zero Query is one that is not known.
func (d *desk) skip(reason string, q capture.Query) {
	d.countSkipped(reason)
	if q.SQL != "" {
		d.do(sampled{reason: reason, query: q})
	}
}

func (d *desk) countSkipped(reason string) {
	d.skipped[reason]++
	d.do(skipped{reason})
	d.do(counted{skippedCounter, reason})
}

// maxUnlisted is how many tables and functions that the configuration lacks are logged: clients choose the names.
const maxUnlisted = 50

// logUnlisted logs each table or function once that the configuration lacks: the counts have only reasons.
func (d *desk) logUnlisted(r recognize.Recognized) {
	if r.Unlisted == "" || d.unlisted[r.Unlisted] || len(d.unlisted) >= maxUnlisted {
		return
	}
	d.unlisted[r.Unlisted] = true
	d.log(zap.WarnLevel, "statements are not audited because of a table or function", zap.String("reason", r.Reason), zap.String("object", r.Unlisted))
}

// count records a statement of a DP query for the coverage.
func (d *desk) count(key string, audited bool) {
	d.coverage.see(key, audited)
	d.do(counted{recognizedCounter, ""})
	if audited {
		d.do(counted{auditedCounter, ""})
	}
}

// turnAway counts a statement without a place for its audit, and logs a warning periodically.
func (d *desk) turnAway(reason string, q capture.Query) {
	d.skip(reason, q)
	counts := d.turned.add(reason, d.now)
	if counts == nil {
		return
	}
	_, share := d.covered()
	d.log(zap.WarnLevel, "statements are not audited: all places for audits are taken (raise audit.max_audits), or statements arrive faster than they can be parsed (backlog); check which user sends them",
		zap.Any("statements_since_last_warning", counts), zap.Int("audits", d.roster.Len()), zap.Float64("audited_query_share", share))
}
