package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite"
)

// rememberedTexts is the minimal number of statements that are recognized without being parsed again. How often clients ran
// queries without an audit is stored for four times as many.
const rememberedTexts = 4096

// recognized is the result of Analyze for a statement.
type recognized struct {
	rewriter *rewrite.Rewriter
	key      string // of the plan
	shape    string
	query    ledger.Query  // what the ledger stores of the plan
	reason   string        // of the refusal; "" = it can be audited
	plan     *rewrite.Plan // only if it was just analysed
	look     inbox.Look    // likewise
	before   bool          // likewise: an execution was turned away before without being parsed; only the ledger's count of the query lacks it

	unclaimed Policy // "" = it is no unclaimed read
}

// Submit takes one captured query: it recognizes it as that of an audit, admits a new audit, or counts it as skipped. It
// parses SQL that it has not seen recently, and hostile text can crash the parser: call it only in a process that may
// crash. With Options.Renew and Options.Ledger it waits until Run has called them once.
func (a *Auditor) Submit(q capture.Query) {
	a.submit(inbox.Arrival{Query: q, Look: inbox.LookAt(a.seed, q)})
}

func (a *Auditor) submit(x inbox.Arrival) {
	<-a.informed
	<-a.keeper.Restored
	if len(x.Query.Then) == 0 {
		a.metrics.captured.Inc()
	}
	r := a.recognize(x.Query, x.Look)
	if !a.place(x.Query, r) {
		a.place(x.Query, a.parse(x.Query))
	}
	a.follow(x.Query, r)
}

// recognize returns the stored result for a statement, or parses it.
func (a *Auditor) recognize(q capture.Query, l inbox.Look) recognized {
	id := textOf(q)
	a.mu.Lock()
	if len(q.Then) == 0 {
		a.captured++
	}
	r, ok := a.known.get(id)
	a.mu.Unlock()
	if ok && r.rewriter == a.rewriter.Load() {
		return r
	}
	over, before := a.passOver(l, id)
	if over {
		return recognized{reason: string(schedule.ShapeSampled), look: l}
	}
	r = a.parse(q)
	remembered := r
	remembered.plan = nil
	r.look, r.before = l, before
	a.mu.Lock()
	a.known.put(id, remembered)
	a.mu.Unlock()
	return r
}

// parse analyzes a statement.
func (a *Auditor) parse(q capture.Query) recognized {
	r := recognized{rewriter: a.rewriter.Load()}
	defer a.opt.Announce(q.SQL)()
	plan, err := a.analyze(r.rewriter, q)
	if err != nil {
		r.reason = reasonOf(err)
		return r
	}
	r.key, r.shape, r.query, r.plan = plan.Key, plan.Shape, ledgerQuery(plan), plan
	r.unclaimed = a.policyOf(q, plan)
	return r
}

// textOf hashes everything of a query that Analyze reads.
func textOf(q capture.Query) [sha256.Size]byte {
	var b []byte
	str := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	params := func(all []capture.Param) {
		b = binary.AppendUvarint(b, uint64(len(all)))
		for _, p := range all {
			b = binary.BigEndian.AppendUint32(b, p.OID)
			b = binary.BigEndian.AppendUint16(b, uint16(p.Format)) //nolint:gosec // only to tell values apart
			if p.Null {
				b = append(b, 0)
				continue
			}
			b = append(b, 1)
			str(string(p.Value))
		}
	}
	for _, s := range []string{q.SQL, q.User, q.Database, q.ApplicationName} {
		str(s)
	}
	flags := byte(q.Protocol)
	if q.SettingsUncertain {
		flags |= 1 << 7
	}
	b = append(b, flags)
	params(q.Params)
	for _, name := range slices.Sorted(maps.Keys(q.Settings)) {
		str(name)
		str(q.Settings[name])
	}
	for _, step := range q.Then {
		str(step.SQL)
		b = append(b, byte(step.Protocol))
		params(step.Params)
	}
	return sha256.Sum256(b)
}

// place finds the audit of a recognized statement or creates one. It returns false, without effect, if it needs the plan
// and r has none.
func (a *Auditor) place(q capture.Query, r recognized) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r.reason {
	case "":
	case string(schedule.ShapeSampled): // not parsed
		a.turnAway(r.reason)
		return true
	default:
		a.skip(r.reason)
		a.suspect(r.reason)
		return true
	}
	if r.unclaimed != "" && r.unclaimed != PolicyAudit {
		a.unclaimed(q, r)
		return true
	}
	key, route := a.identity(q, r.key)
	done, placed := a.placeQuery(q, r, key, route)
	if done && len(q.Then) == 0 { // a sequence is no execution of its own
		a.keeper.See(key, r.query, q, placed, r.before)
	}
	return done
}

// placeQuery finds the audit of a query or creates one; done is the result of place, placed means that the query has an audit.
// The caller holds Auditor.mu.
func (a *Auditor) placeQuery(q capture.Query, r recognized, key, route string) (done, placed bool) {
	if j := a.jobs[key]; j != nil {
		outdated, due := a.outdated(j), a.due(j)
		if outdated || due {
			if r.plan == nil {
				return false, false
			}
			if outdated {
				j.restarts++
			} else {
				j.repeats++
				j.previous = j.worst().Verdict
			}
			a.again(j, q, r.plan)
		}
		j.Seen++
		j.LastSeen = q.Completed
		a.count(key, true)
		return true, true
	}
	if a.records.seen(key, q.Completed) {
		a.count(key, true)
		return true, true
	}
	asked, _ := a.asked.get(key)
	seat := schedule.Audit{
		Key: key, Shape: r.shape, Owner: schedule.Owner{User: q.User, Database: q.Database, Route: route},
		Seen: asked.seen + 1, LastSeen: q.Completed, Tried: asked.tried && a.keeper.On,
	}
	if _, refusal := a.roster.Room(&seat); refusal != "" {
		asked.seen++
		a.asked.put(key, asked)
		a.outcomeOf(r.look, true)
		a.count(key, false)
		a.turnAway(string(refusal))
		return true, false
	}
	if r.plan == nil {
		return false, false
	}
	a.outcomeOf(r.look, false)
	a.admit(&job{Audit: seat, plan: r.plan, query: q})
	return true, true
}

// admit adds an audit for which Room has found a place. The caller holds Auditor.mu.
func (a *Auditor) admit(j *job) {
	j.firstSeen, j.LastSeen = j.query.Completed, j.query.Completed
	a.enter(j)
}

// enter adds an audit for which Room has found a place. The caller holds Auditor.mu.
func (a *Auditor) enter(j *job) {
	j.id = shortID(j.Key)
	j.reports = append(j.reports, a.emptyReport(j.plan, "no trials"))
	j.hoist = a.hoisting(j.query.SQL)
	j.Bytes = j.size()
	evicted, refusal := a.roster.Admit(&j.Audit, a.opt.Now())
	if refusal != "" { // impossible: Room was called with the lock held
		a.turnAway(string(refusal))
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

// again restarts a decided audit. The caller holds Auditor.mu.
func (a *Auditor) again(j *job, q capture.Query, plan *rewrite.Plan) {
	a.stand(j)
	if plan != j.plan {
		j.setPlan(plan)
	}
	j.hoist = a.hoisting(q.SQL)
	j.query, j.worlds, j.evidence, j.hoisting, j.trouble, j.epoch = q, nil, nil, nil, "", ""
	j.life.Engine, j.life.Differ, j.Measuring = "", nil, false
	j.confirming, j.suspected, j.doubted = false, 0, false
	j.watch = watch{}
	j.reports, j.partitions = append(j.reports[:0:0], a.emptyReport(plan, "no trials")), 0
	a.roster.Restart(&j.Audit, a.opt.Now())
	a.roster.Resize(&j.Audit, j.size())
	a.wake()
}

// analyze calls rewrite and turns a panic into an error, so that no statement ends the auditor with a panic.
func (a *Auditor) analyze(r *rewrite.Rewriter, q capture.Query) (plan *rewrite.Plan, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errPanic
			a.recovered("analyze", r)
		}
	}()
	return r.Analyze(q)
}

var errPanic = errors.New("panic")

// Reasons of this package for skipping a statement, besides those of rewrite and schedule.
const (
	skippedPanic   = "internal_error"
	skippedOther   = "other"
	skippedBacklog = "backlog" // queries arrived faster than they were recognized
)

func reasonOf(err error) string {
	var u *rewrite.UnsupportedError
	switch {
	case errors.As(err, &u):
		return string(u.Reason)
	case errors.Is(err, errPanic):
		return skippedPanic
	default:
		return skippedOther
	}
}

// skipReasons returns every reason for skipping a statement.
func skipReasons() []string {
	reasons := []string{skippedPanic, skippedOther, skippedBacklog, skippedUnclaimed}
	for _, r := range rewrite.Reasons() {
		reasons = append(reasons, string(r))
	}
	for _, r := range schedule.Refusals() {
		reasons = append(reasons, string(r))
	}
	return reasons
}

func (a *Auditor) skip(reason string) { // with a.mu held
	a.skipped[reason]++
	a.keeper.Skip(reason, 1, a.opt.Now())
	a.metrics.skipped.WithLabelValues(reason).Inc()
}

// count records a statement of a DP query for the coverage. The caller holds Auditor.mu.
func (a *Auditor) count(key string, audited bool) {
	a.coverage.see(key, audited)
	a.metrics.recognized.Inc()
	if audited {
		a.metrics.audited.Inc()
	}
}

// turnAway counts a statement without a place for its audit, and logs a warning periodically. The caller holds Auditor.mu.
func (a *Auditor) turnAway(reason string) {
	a.skip(reason)
	counts := a.turned.add(reason, a.opt.Now())
	if counts == nil {
		return
	}
	_, share := a.coverage.queries()
	a.opt.Logger.Warn("statements are not audited: all places for audits are taken (raise audit.max_audits or audit.max_per_shape), or statements arrive faster than they can be parsed (backlog); check which user sends them",
		zap.Any("statements_since_last_warning", counts), zap.Int("audits", a.roster.Len()), zap.Float64("audited_query_share", share))
}
