package desk

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/recent"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

// places are those of the audits: who has one, who loses it, and what is remembered of a query that has none.
type places struct {
	*core
	versions   *versions
	violations *violations
	counts     *counts
	controls   *Controls
	records    records
	evictions  map[string]uint64          // by reason
	asked      recent.Map[string, demand] // queries without an audit, by key
	ended      recent.Map[string, ended]  // statements that must not run again, by key
}

func newPlaces(c *core, versions *versions, violations *violations, counts *counts) *places {
	return &places{
		core: c, versions: versions, violations: violations, counts: counts, evictions: map[string]uint64{},
		records: records{most: recordsPerAudit * c.opt.MaxAudits}, asked: recent.Map[string, demand]{N: 4 * recognize.RememberedTexts},
		ended: recent.Map[string, ended]{N: 4 * recognize.RememberedTexts},
	}
}

// enter adds an audit for which Room has found a place.
func (p *places) enter(j *job) {
	j.id, j.hash, j.admitted = ShortID(j.Key), keyHash(j.Key), p.wall
	j.reports = append(j.reports, p.emptyReport(j.plan, "no trials"))
	j.hoisting = p.noHoisting()
	j.Bytes = j.size()
	evicted, refusal := p.roster.Admit(&j.Audit, p.now)
	if refusal != "" { // impossible: Room was asked in the same use
		p.counts.turnAway(string(refusal), j.query)
		return
	}
	if evicted != nil {
		p.forget(evicted, evictedPlace)
	}
	p.jobs[j.Key] = j
	if !j.control {
		p.order = append(p.order, j)
		p.counts.count(j.Key, true)
		p.controls.choose(j)
	}
	p.shed()
	p.do(Wake{})
}

// again restarts a decided audit with a plan, and the edition of the catalogs with which it was made.
func (p *places) again(j *job, q capture.Query, plan *rewrite.Plan, edition uint64) {
	j.shown = nil
	p.violations.stand(j)
	if plan != j.plan {
		j.setPlan(plan, edition)
		j.admitted = p.wall
	}
	j.query, j.worlds, j.reported, j.evidence, j.trouble, j.copies = q, nil, nil, nil, "", ""
	j.hoisting = p.noHoisting()
	j.life.Engine, j.life.Differ, j.Measuring = "", nil, false
	j.confirming, j.suspected, j.doubted = false, 0, false
	j.watch = watch{}
	j.reports, j.partitions = append(j.reports[:0:0], p.emptyReport(plan, "no trials")), 0
	p.roster.Restart(&j.Audit, p.now)
	p.roster.Resize(&j.Audit, j.size())
	p.do(Wake{})
}

// Reasons of evictions, fit for a metric label.
const (
	evictedPlace    = "place"    // another query got its place
	evictedMemory   = "memory"   // the audits exceeded their memory budget
	evictedRecord   = "recorded" // a violation that is kept as a record
	recordsPerAudit = 4          // records of violations that are kept, per place for an audit
)

// EvictReasons returns every reason of an eviction.
func EvictReasons() []string { return []string{evictedPlace, evictedMemory, evictedRecord} }

// demand is what is remembered of a query without an audit.
type demand struct {
	seen  uint64 // times that clients ran it
	tried bool   // it has lost its place after its first trials
}

// warnEvery is how often a condition that persists is logged.
const warnEvery = time.Minute

// forget drops an audit that has left the roster.
func (p *places) forget(seat *schedule.Audit, reason string) {
	j := p.job(seat.Key)
	p.violations.abandon(j)
	delete(p.jobs, seat.Key)
	if j.control {
		return
	}
	p.order = slices.DeleteFunc(p.order, func(o *job) bool { return o == j })
	p.evictions[reason]++
	p.do(Counted{EvictedCounter, reason})
	if seat.Phase() == schedule.Queued {
		if j.processes == 0 {
			p.do(Displaced{seat.Key})
		}
		p.counts.coverage.lose(seat.Key)
		p.asked.Put(seat.Key, demand{seat.Seen, seat.Tried || seat.Trials > 0})
	}
}

// shed evicts audits until the others fit in the memory budget.
func (p *places) shed() {
	p.giveUpMeasurements()
	n := 0
	for seat := p.roster.Shed(); seat != nil; seat = p.roster.Shed() {
		p.forget(seat, evictedMemory)
		n++
	}
	if n == 0 {
		return
	}
	if counts := p.counts.turned.add(evictedMemory, p.now); counts != nil {
		p.log(zap.WarnLevel, "undecided audits were evicted because the audits exceed their memory budget; raise audit.memory",
			zap.Any("since_last_warning", counts), zap.Int64("audit_bytes", p.roster.Bytes()), zap.Int64("budget_bytes", p.opt.Memory))
	}
}

// retire replaces violations that occupy too many of the places by records.
func (p *places) retire() {
	for seat := p.roster.Retire(); seat != nil; seat = p.roster.Retire() {
		j := p.job(seat.Key)
		p.violations.stand(j)
		p.versions.callsOf(&j.life, j.plan)
		lost := p.records.add(&seatedRecord{Record: j.record(), seat: seat, standing: j.life.standing, life: j.life, copies: j.copies})
		p.forget(seat, evictedRecord)
		p.log(zap.WarnLevel, "violations hold more than half of the places for audits: one is evicted, and a record of it is kept", zap.String("audit", j.id))
		if lost == nil {
			continue
		}
		p.roster.Reopen(lost.seat)
		p.do(Counted{LostCounter, ""})
		p.log(zap.ErrorLevel, "the oldest record of a violation is dropped because there are too many; its alert is still valid",
			zap.String("audit", lost.ID), zap.String("db.query.summary", lost.Summary))
	}
}

// turnedAway counts the queries turned away between two warnings.
type turnedAway struct {
	counts map[string]uint64
	warned time.Time
}
