package keep

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// Keeper writes to the ledger what must outlive the process. Without a ledger it does nothing.
type Keeper struct {
	log  *zap.Logger
	text func(error) string // of an error, without what it quotes from rows
	self ledger.Process

	On       bool                            // there is a ledger
	Engine   atomic.Pointer[ledger.Engine]   // set before Restored is closed
	Recorder atomic.Pointer[ledger.Recorder] // while another process audits the engine, until this one does
	Shares   atomic.Bool                     // captured queries go to the ledger while another process audits the engine
	Restored chan struct{}                   // closed when the audits of earlier processes are restored, or there is no ledger
	once     sync.Once                       // closes Restored

	observations
	spool

	recording sync.Mutex // one writer of observations at a time

	writing sync.Mutex // one write of an audit at a time, so that an earlier state does not replace a later one

	mu          sync.Mutex              // guards the fields below
	unsaved     map[string]unsavedAudit // states that are not written yet, by key
	puts        uint64
	recordsOnly bool             // another process audits the engine
	holder      ledger.Process   // that one
	others      []ledger.Process // those that record for this process
	trouble     string           // why the last write failed; "" = it did not
	removed     view.Removed
}

type unsavedAudit struct {
	audit  ledger.Audit
	number uint64
}

// New returns a keeper. Without a ledger (on) audits need not wait for it. open opens the spool; nil = there is none.
func New(on bool, self ledger.Process, open func() (*ledger.Spool, error), text func(error) string, log *zap.Logger) *Keeper {
	k := &Keeper{
		log: log, text: text, self: self, On: on, Restored: make(chan struct{}), observations: newObservations(on), spool: spool{open: open, log: log, text: text},
		unsaved: map[string]unsavedAudit{},
	}
	if !on {
		k.Release()
	}
	return k
}

// Release lets audits begin.
func (k *Keeper) Release() { k.once.Do(func() { close(k.Restored) }) }

// Wait waits until the audits of earlier processes are restored.
func (k *Keeper) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.Restored:
		return nil
	}
}

// SetTrouble notes why the ledger cannot be used; "" = it can.
func (k *Keeper) SetTrouble(trouble string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trouble = trouble
}

// Note notes the present state of an audit for Write. Like the ledger, it keeps the evidence of the state before if
// this one has none.
func (k *Keeper) Note(audit ledger.Audit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.puts++
	if before := k.unsaved[audit.Query.Key].audit; before.Processes == audit.Processes && before.EvidenceTrials > 0 && audit.EvidenceTrials == 0 {
		audit.Progress, audit.EvidenceTrials, audit.Trials, audit.Lower = before.Progress, before.EvidenceTrials, before.Trials, before.Lower
		audit.DataEpoch, audit.EngineEpoch = before.DataEpoch, before.EngineEpoch
	}
	k.unsaved[audit.Query.Key] = unsavedAudit{audit, k.puts}
}

// SetOthers notes which processes record for this one, and returns those noted before.
func (k *Keeper) SetOthers(all []ledger.Process) (before []ledger.Process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, k.others = k.others, all
	return before
}

// Removed counts what was removed from the ledger because of its age.
func (k *Keeper) Removed(r view.Removed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.removed.Queries += r.Queries
	k.removed.Rows += r.Rows
}

// Waits reports whether a state of an audit is not written yet.
func (k *Keeper) Waits(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.unsaved[key]
	return ok
}

// Write writes the latest state of an audit, if it was not written yet.
func (k *Keeper) Write(ctx context.Context, key string) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	u, ok := k.unsaved[key]
	k.mu.Unlock()
	if !ok {
		return nil
	}
	row := u.audit
	if row.Progress != nil {
		row.Progress = ledger.Seal(row.Progress)
	}
	err := k.Engine.Load().Audits.Save(ctx, row)
	if errors.Is(err, ledger.ErrFewerTrials) { // a fault of this program, not of the ledger, and one that a later write would meet too
		k.log.Error("a state of an audit is not stored", zap.String("audit", key[:min(12, len(key))]), zap.String("error", k.text(err)))
		err = nil
	}
	k.Wrote(err)
	if err == nil {
		k.mu.Lock()
		if k.unsaved[key].number == u.number {
			delete(k.unsaved, key)
		}
		k.mu.Unlock()
	}
	return err
}

// Wrote notes the result of a write, and logs when the ledger goes away and comes back.
func (k *Keeper) Wrote(err error) {
	text := ""
	if err != nil {
		text = k.text(err)
	}
	k.mu.Lock()
	before := k.trouble
	k.trouble = text
	k.mu.Unlock()
	switch {
	case text != "" && before == "":
		k.log.Error("the ledger cannot be written: evidence is kept in memory and written later, new audits wait", zap.String("error", text))
	case text == "" && before != "":
		k.log.Info("the ledger can be written again")
	}
}

// WriteAll writes the latest states of all audits that were not written yet.
func (k *Keeper) WriteAll(ctx context.Context) error {
	k.mu.Lock()
	keys := slices.Collect(maps.Keys(k.unsaved))
	k.mu.Unlock()
	for _, key := range keys {
		if err := k.Write(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// State returns what the status shows; nil without a ledger.
func (k *Keeper) State() *view.LedgerState {
	if !k.On {
		return nil
	}
	s := &view.LedgerState{}
	select {
	case <-k.Restored:
		s.Restored = true
	default:
	}
	s.Spooled = k.bytes()
	s.Waiting, s.Lost = k.waiting()
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Trouble, s.Unsaved = k.trouble, len(k.unsaved)
	s.Removed = k.removed
	if s.Recorders = k.others; k.recordsOnly {
		holder := k.holder
		s.Holder = &holder
	}
	other := func(p ledger.Process) bool { return Differs(p, k.self) }
	s.OtherConfiguration = s.Holder != nil && other(*s.Holder) || slices.ContainsFunc(s.Recorders, other)
	return s
}
