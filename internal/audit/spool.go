package audit

import (
	"context"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// spoolInbox moves the queries of the inbox to the spool if there are more than the given part of its bounds: 2 = a
// half, 0 = any. What the spool cannot take is counted as skipped.
func (a *Auditor) spoolInbox(part int) {
	if !a.inbox.Beyond(part) {
		return
	}
	s := a.keeper.Spool()
	if s == nil {
		return
	}
	content, n := a.takeInbox()
	err := s.Put(ledger.SpooledQueries, content)
	if err == nil {
		a.keeper.Settle(n)
		return
	}
	a.keeper.SaySpoolFull(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	for range n {
		a.captured++
		a.metrics.captured.Inc()
		a.turnAway(skippedBacklog, capture.Query{})
		a.keeper.Handled()
	}
}

// unspool submits the queries of the first spooled file, and reports whether there may be another one. The ledger
// remembers the file, so that it is not submitted twice even if it cannot be removed.
func (a *Auditor) unspool(ctx context.Context) bool {
	s := a.keeper.Spool()
	if s == nil || !a.keeper.Ready() {
		return false
	}
	name, content, err := s.First(ledger.SpooledQueries)
	switch {
	case err != nil:
		a.opt.Logger.Error("captured queries in the spool cannot be submitted", zap.String("error", a.say(err)))
		return true
	case name == "":
		return false
	}
	switch done, err := a.keeper.Engine.Load().Submitted(ctx, name); {
	case err != nil:
		a.keeper.Wrote(err)
		return false
	case done:
		_ = s.Remove(name)
		return true
	}
	if a.keeper.Record(ctx) != nil {
		return false
	}
	a.keeper.Hold()
	a.submitAll(content, func(part int) bool { return s.Attempt(name, part) <= spoolAttempts })
	a.keeper.Submitted(name, 0)
	return a.keeper.Record(ctx) == nil
}

// spoolAttempts is the number of auditor processes that may end while they submit a spooled query: hostile SQL can
// crash the parser.
const spoolAttempts = 2

// leaveOut counts a spooled query during which auditors ended.
func (a *Auditor) leaveOut() {
	a.opt.Logger.Error("a spooled query is not submitted: the auditor ended twice while it parsed the statement")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.captured++
	a.metrics.captured.Inc()
	a.countSkipped(recognize.SkippedPanic)
}
