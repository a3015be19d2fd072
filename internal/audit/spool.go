package audit

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// reopenSpool is the interval at which a spool that cannot be opened is tried again: another process may still use it.
const reopenSpool = 10 * time.Second

// spool is where observations and captured queries wait on disk while the ledger is away. It is safe for concurrent use.
type spool struct {
	open func() (*ledger.Spool, error) // nil = there is none

	mu    sync.Mutex // guards the fields below
	spool *ledger.Spool
	tried time.Time
	said  string // the last trouble
}

// get returns the spool, nil if there is none or it cannot be opened.
func (s *spool) get(a *Auditor) *ledger.Spool {
	if s.open == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spool != nil || !s.tried.IsZero() && time.Since(s.tried) < reopenSpool {
		return s.spool
	}
	s.tried = time.Now()
	var err error
	if s.spool, err = s.open(); err == nil {
		return s.spool
	}
	s.spool = nil
	if text := a.say(err); text != s.said {
		s.said = text
		a.opt.Logger.Error("the spool cannot be used: while the ledger is away, observations are kept in memory only", zap.String("error", text))
	}
	return nil
}

func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spool != nil {
		_ = s.spool.Close()
		s.spool = nil
	}
}

// spoolInbox moves the queries of the inbox to the spool if there are more than the given part of its bounds: 2 = a half, 0 = any. What the spool cannot
// take is counted as skipped.
func (a *Auditor) spoolInbox(part int) {
	if !a.inbox.Beyond(part) {
		return
	}
	s := a.spool.get(a)
	if s == nil {
		return
	}
	content, n := a.takeInbox()
	err := s.Put(ledger.SpooledQueries, content)
	if err == nil {
		return
	}
	a.sayFull(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	for range n {
		a.captured++
		a.metrics.captured.Inc()
		a.turnAway(skippedBacklog)
	}
}

// sayFull logs that the spool cannot take more.
func (a *Auditor) sayFull(err error) {
	a.spool.mu.Lock()
	defer a.spool.mu.Unlock()
	if text := a.say(err); text != a.spool.said {
		a.spool.said = text
		a.opt.Logger.Error("the spool cannot take what the ledger misses: the rest is counted as lost, or skipped as backlog (raise ledger.spool.max_bytes)", zap.String("error", text))
	}
}

// unspool submits the queries of the first spooled file, and reports whether there may be another one. The ledger remembers the file, so that it is not submitted
// twice even if it cannot be removed.
func (a *Auditor) unspool(ctx context.Context) bool {
	s := a.spool.get(a)
	if s == nil || !a.keeper.ready() {
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
	switch done, err := a.keeper.engine.Load().Submitted(ctx, name); {
	case err != nil:
		a.wrote(err)
		return false
	case done:
		_ = s.Remove(name)
		return true
	}
	if a.record(ctx) != nil {
		return false
	}
	a.keeper.hold()
	a.submitAll(content, func(part int) bool { return s.Attempt(name, part) <= spoolAttempts })
	a.keeper.submitted(name, 0)
	return a.record(ctx) == nil
}

// spoolAttempts is the number of auditor processes that may end while they submit a spooled query: hostile SQL can crash the parser.
const spoolAttempts = 2

// leaveOut counts a spooled query during which auditors ended.
func (a *Auditor) leaveOut() {
	a.opt.Logger.Error("a spooled query is not submitted: the auditor ended twice while it parsed the statement")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.captured++
	a.metrics.captured.Inc()
	a.skip(skippedPanic)
}

// spoolObservations moves observations that could not be written to the spool, as far as it has room.
func (a *Auditor) spoolObservations() {
	k := a.keeper
	k.recording.Lock()
	defer k.recording.Unlock()
	s := a.spool.get(a)
	if s == nil {
		return
	}
	for b := k.batch(); b != nil && b.File == "" && b.Captured == 0; b = k.batch() { // what comes from a file, or from another process, is still there
		if err := s.PutBatch(*b); err != nil {
			a.sayFull(err)
			return
		}
		k.done()
	}
}

// recordSpooled writes the spooled observations. The caller holds keeper.recording.
func (a *Auditor) recordSpooled(ctx context.Context) error {
	s := a.spool.get(a)
	if s == nil {
		return nil
	}
	for {
		name, b, err := s.FirstBatch()
		switch {
		case err != nil:
			a.opt.Logger.Error("observations in the spool cannot be written to the ledger", zap.String("error", a.say(err)))
			continue
		case name == "":
			return nil
		}
		if b.Term == 0 {
			b.File = name
		}
		if err = a.keeper.writer().Record(ctx, b); err != nil {
			return err
		}
		if err := s.Remove(name); err != nil {
			a.opt.Logger.Warn("a spooled file cannot be removed; it does not count twice", zap.String("error", a.say(err)))
		}
	}
}

// ledgerState returns what the status shows of the ledger; nil without one.
func (a *Auditor) ledgerState() *view.LedgerState {
	state := a.keeper.state()
	a.spool.mu.Lock()
	defer a.spool.mu.Unlock()
	if state != nil && a.spool.spool != nil {
		_, state.Spooled = a.spool.spool.Len()
	}
	if state != nil {
		other := func(p ledger.Process) bool { return differs(p, a.opt.Process) }
		state.OtherConfiguration = state.Holder != nil && other(*state.Holder) || slices.ContainsFunc(state.Recorders, other)
	}
	return state
}
