package audit

import (
	"fmt"
	"time"

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
func (a *Auditor) place(q capture.Query, r recognize.Recognized) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.Passed:
		a.count(fmt.Sprintf("%016x", r.Look.Text), false)
		a.turnAway(string(schedule.ShapeSampled), q)
		return true
	case r.Reason != "":
		a.skipRefused(q, r)
		a.suspect(r.Reason)
		a.logUnlisted(r)
		return true
	}
	if r.Unclaimed != "" && r.Unclaimed != recognize.PolicyAudit {
		a.unclaimed(q, r)
		return true
	}
	key, route := identity(&a.opt, q, r.Key)
	done, placed := a.placeQuery(q, r, key, route)
	if done && len(q.Then) == 0 { // a sequence is no execution of its own
		a.keeper.See(key, r.Query, q, placed, r.Before)
	}
	return done
}

// placeQuery finds the audit of a query or creates one; done is the result of place, placed means that the query has an
// audit. The caller holds Auditor.mu.
func (a *Auditor) placeQuery(q capture.Query, r recognize.Recognized, key, route string) (done, placed bool) {
	if j := a.jobs[key]; j != nil {
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
			a.again(j, q, r.Plan, r.Edition)
		}
		j.answers = read.AddDestinations(j.answers, r.Query.Destinations)
		j.Seen++
		j.LastSeen = q.Completed
		a.count(key, true)
		return true, true
	}
	record := a.records.byKey[key]
	if record != nil && !a.outlived(record) {
		record.seen(q.Completed)
		a.count(key, true)
		return true, true
	}
	asked, _ := a.asked.Get(key)
	seat := schedule.Audit{
		Key: key, Shape: r.Shape, Owner: schedule.Owner{User: q.User, Database: q.Database, Route: route},
		Seen: asked.seen + 1, LastSeen: q.Completed, Tried: asked.tried && a.keeper.On,
	}
	if record != nil {
		seat.Seen = record.Seen + 1
	}
	switch _, refusal := a.roster.Room(&seat); {
	case refusal != "" && record != nil: // it stays a record
		record.seen(q.Completed)
		a.count(key, true)
		return true, true
	case refusal != "":
		asked.seen++
		a.asked.Put(key, asked)
		a.recognizer.Outcome(r.Look, true)
		a.count(key, false)
		a.turnAway(string(refusal), q)
		return true, false
	}
	if r.Plan == nil {
		return false, false
	}
	a.recognizer.Outcome(r.Look, false)
	j := &job{Audit: seat, plan: r.Plan, edition: r.Edition, query: q, answers: r.Query.Destinations}
	a.admit(j)
	if record != nil {
		a.roster.Reopen(record.seat)
		a.records.handOver(record, j)
	}
	return true, true
}

// admit adds an audit for which Room has found a place. The caller holds Auditor.mu.
func (a *Auditor) admit(j *job) {
	j.firstSeen, j.LastSeen = j.query.Completed, j.query.Completed
	a.enter(j)
	a.keeper.Place(j.storedQuery())
}

// enter adds an audit for which Room has found a place. The caller holds Auditor.mu.
func (a *Auditor) enter(j *job) {
	j.id, j.admitted = shortID(j.Key), time.Now()
	j.reports = append(j.reports, a.emptyReport(j.plan, "no trials"))
	j.hoisting = a.noHoisting()
	j.Bytes = j.size()
	evicted, refusal := a.roster.Admit(&j.Audit, a.opt.Now())
	if refusal != "" { // impossible: Room was called with the lock held
		a.turnAway(string(refusal), j.query)
		return
	}
	if evicted != nil {
		a.forget(evicted, evictedPlace)
	}
	a.jobs[j.Key] = j
	a.order = append(a.order, j)
	a.count(j.Key, true)
	a.shed()
	a.wake()
}

// again restarts a decided audit with a plan, and the edition of the catalogs with which it was made. The caller holds
// Auditor.mu.
func (a *Auditor) again(j *job, q capture.Query, plan *rewrite.Plan, edition uint64) {
	a.stand(j)
	if plan != j.plan {
		j.setPlan(plan, edition)
		j.admitted = time.Now()
	}
	j.query, j.worlds, j.reported, j.evidence, j.trouble, j.epoch = q, nil, nil, nil, "", ""
	j.hoisting, j.hoisted, j.hoistOff = a.noHoisting(), 0, ""
	j.life.Engine, j.life.Differ, j.Measuring = "", nil, false
	j.confirming, j.suspected, j.doubted = false, 0, false
	j.watch = watch{}
	j.reports, j.partitions = append(j.reports[:0:0], a.emptyReport(plan, "no trials")), 0
	a.roster.Restart(&j.Audit, a.opt.Now())
	a.roster.Resize(&j.Audit, j.size())
	a.wake()
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

// skip counts a statement that is not audited; the zero Query is one that is not known. The caller holds Auditor.mu.
func (a *Auditor) skip(reason string, q capture.Query) {
	a.countSkipped(reason)
	if q.SQL != "" && a.keeper.WantsSample(reason, q) {
		a.sample(capture.SampleOf(reason, q, false))
	}
}

// skipRefused counts a statement that the rewriter refuses. The caller holds Auditor.mu.
func (a *Auditor) skipRefused(q capture.Query, r recognize.Recognized) {
	a.countSkipped(r.Reason)
	if a.keeper.WantsSample(r.Reason, q) {
		x := capture.SampleOf(r.Reason, q, false)
		x.Detail, x.Advice = r.Detail, r.Advice
		a.sample(x)
	}
}

// sample keeps a sample for the ledger, with the text of the statement only if that may be shown.
func (a *Auditor) sample(x capture.Sample) {
	if !a.opt.ShowSQL {
		x.Text = ""
	}
	a.keeper.Sample(x)
}

func (a *Auditor) countSkipped(reason string) {
	a.skipped[reason]++
	a.keeper.Skip(reason, 1, a.opt.Now())
	a.metrics.skipped.WithLabelValues(reason).Inc()
}

// maxUnlisted is how many tables and functions that the configuration lacks are logged: clients choose the names.
const maxUnlisted = 50

// logUnlisted logs each table or function once that the configuration lacks: the counts have only reasons. The caller
// holds Auditor.mu.
func (a *Auditor) logUnlisted(r recognize.Recognized) {
	if r.Unlisted == "" || a.unlisted[r.Unlisted] || len(a.unlisted) >= maxUnlisted {
		return
	}
	a.unlisted[r.Unlisted] = true
	a.opt.Logger.Warn("statements are not audited because of a table or function", zap.String("reason", r.Reason), zap.String("object", r.Unlisted))
}

// count records a statement of a DP query for the coverage. The caller holds Auditor.mu.
func (a *Auditor) count(key string, audited bool) {
	a.coverage.see(key, audited)
	a.metrics.recognized.Inc()
	if audited {
		a.metrics.audited.Inc()
	}
}

// turnAway counts a statement without a place for its audit, and logs a warning periodically. The caller holds
// Auditor.mu.
func (a *Auditor) turnAway(reason string, q capture.Query) {
	a.skip(reason, q)
	counts := a.turned.add(reason, a.opt.Now())
	if counts == nil {
		return
	}
	_, share := a.covered()
	a.opt.Logger.Warn("statements are not audited: all places for audits are taken (raise audit.max_audits), or statements arrive faster than they can be parsed (backlog); check which user sends them",
		zap.Any("statements_since_last_warning", counts), zap.Int("audits", a.roster.Len()), zap.Float64("audited_query_share", share))
}
