package desk

import (
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/recent"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// counts counts captured statements, and estimates which part of the queries is audited.
type counts struct {
	*core
	captured uint64
	skipped  map[string]uint64 // by reason
	coverage coverage
	unlisted map[string]bool               // tables and functions that were logged, see logUnlisted
	turned   turnedAway                    // since the last warning
	readers  recent.Map[reader, time.Time] // of unclaimed reads, by when they were reported
}

func newCounts(c *core) *counts {
	return &counts{core: c, skipped: map[string]uint64{}, unlisted: map[string]bool{}, readers: recent.Map[reader, time.Time]{N: reportedUnclaimed}}
}

// SkippedBacklog is the reason of queries that arrived faster than they were recognized.
const SkippedBacklog = "backlog"

// SkipReasons returns every reason for skipping a statement.
func SkipReasons() []string {
	all := []string{recognize.SkippedPanic, recognize.SkippedOther, recognize.SkippedUnevaluated, SkippedBacklog, skippedUnclaimed}
	for _, r := range reasons.All() {
		all = append(all, string(r))
	}
	for _, r := range schedule.Refusals() {
		all = append(all, string(r))
	}
	return all
}

// skip counts a statement that is not audited; the zero Query is one that is not known.
func (k *counts) skip(reason string, q capture.Query) {
	k.countSkipped(reason)
	if q.SQL != "" {
		k.do(Sampled{Reason: reason, Query: q})
	}
}

func (k *counts) countSkipped(reason string) {
	k.skipped[reason]++
	k.do(Skipped{reason, k.now})
}

// maxUnlisted is how many tables and functions that the configuration lacks are logged: clients choose the names.
const maxUnlisted = 50

// logUnlisted logs each table or function once that the configuration lacks: the counts have only reasons.
func (k *counts) logUnlisted(r recognize.Recognized) {
	if r.Unlisted == "" || k.unlisted[r.Unlisted] || len(k.unlisted) >= maxUnlisted {
		return
	}
	k.unlisted[r.Unlisted] = true
	k.log(zap.WarnLevel, "statements are not audited because of a table or function", zap.String("reason", r.Reason), zap.String("object", r.Unlisted))
}

// count records a statement of a DP query for the coverage.
func (k *counts) count(key string, audited bool) {
	k.coverage.see(key, audited)
	k.do(Counted{RecognizedCounter, ""})
	if audited {
		k.do(Counted{AuditedCounter, ""})
	}
}

// turnAway counts a statement without a place for its audit, and logs a warning periodically.
func (k *counts) turnAway(reason string, q capture.Query) {
	k.skip(reason, q)
	counts := k.turned.add(reason, k.now)
	if counts == nil {
		return
	}
	_, share := k.covered()
	k.log(zap.WarnLevel, "statements are not audited: all places for audits are taken (raise audit.max_audits), or statements arrive faster than they can be parsed (backlog); check which user sends them",
		zap.Any("statements_since_last_warning", counts), zap.Int("audits", k.roster.Len()), zap.Float64p("audited_query_share", share))
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
