package audit

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// keepEvery is the interval at which observations are written to the ledger, and failed writes are retried.
const keepEvery = time.Second

// maxObservations bounds the observations that wait to be written; beyond it they are counted as lost.
const maxObservations = 16384

// keeper writes to the ledger what must outlive the process. Without a ledger it does nothing.
type keeper struct {
	on       bool                            // there is a ledger
	engine   atomic.Pointer[ledger.Engine]   // set before restored is closed
	recorder atomic.Pointer[ledger.Recorder] // while another process audits the engine, until this one does
	shares   atomic.Bool                     // recordOnly writes the inbox to the ledger
	restored chan struct{}                   // closed when the audits of earlier processes are restored, or there is no ledger
	once     sync.Once                       // closes restored

	recording sync.Mutex // one writer of observations at a time

	writing sync.Mutex // one write of an audit at a time, so that an earlier state does not replace a later one

	mu          sync.Mutex              // guards the fields below
	unsaved     map[string]unsavedAudit // states that are not written yet, by key
	puts        uint64
	sightings   map[sighted]*ledger.Sighting
	skips       map[skippedIn]int64
	pending     *ledger.Batch    // its write failed, perhaps after it took effect
	holding     bool             // a spooled file is being submitted: its observations go into one batch
	file        string           // the file whose observations the next batch has; "" = none
	captured    int64            // the Capture whose observations it has; 0 = none
	queries     []byte           // that it has for the process that audits the engine
	statements  int              // number of queries
	recordsOnly bool             // another process audits the engine
	holder      ledger.Process   // that one
	others      []ledger.Process // those that record for this process
	seq         int64
	lost        uint64 // executions and skipped statements that were not recorded
	trouble     string // why the last write failed; "" = it did not
	removed     view.Removed
}

type unsavedAudit struct {
	audit  ledger.Audit
	number uint64
}

// sighted identifies what one user ran in one hour.
type sighted struct {
	key, user, database, application string
	hour                             int64
}

type skippedIn struct {
	reason string
	hour   int64
}

// ledgerError is an error of the ledger: the audit waits.
type ledgerError struct{ error }

func (e *ledgerError) Unwrap() error { return e.error }

func newKeeper(on bool) *keeper {
	k := &keeper{
		on: on, restored: make(chan struct{}),
		unsaved: map[string]unsavedAudit{}, sightings: map[sighted]*ledger.Sighting{}, skips: map[skippedIn]int64{},
	}
	if !on {
		k.release()
	}
	return k
}

// release lets audits begin.
func (k *keeper) release() { k.once.Do(func() { close(k.restored) }) }

// wait waits until the audits of earlier processes are restored.
func (k *keeper) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.restored:
		return nil
	}
}

// keep opens the ledger, restores the audits, and then writes observations and what could not be written before. It returns
// an error if another process takes over, otherwise when ctx is done.
func (a *Auditor) keep(ctx context.Context) error {
	defer a.keeper.release() // at the end nothing waits any more
	if !a.openLedger(ctx) {
		return nil
	}
	tick, asked := time.NewTicker(keepEvery), time.Time{}
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			err := a.flush(ctx)
			if err == nil {
				err = errors.Join(a.recallAcceptances(ctx), a.reaudit(ctx))
			}
			if err == nil && time.Since(asked) >= othersEvery {
				asked, err = time.Now(), a.readOthers(ctx)
			}
			switch {
			case errors.Is(err, ledger.ErrReplaced):
				return err
			case err != nil && ctx.Err() == nil:
				a.spoolObservations()
			}
		}
	}
}

// closeLedger writes what is waiting and releases the ledger.
func (a *Auditor) closeLedger() {
	defer a.spool.close()
	ctx, cancel := context.WithTimeout(context.Background(), a.opt.CloseTimeout)
	defer cancel()
	if r := a.keeper.recorder.Load(); r != nil {
		_ = a.handOver(ctx) // what it cannot write is spooled below
		defer r.Close()
	}
	a.spoolInbox(0)
	engine := a.keeper.engine.Load()
	if engine == nil {
		a.spoolObservations()
		return
	}
	if a.flush(ctx) != nil {
		a.spoolObservations()
	}
	engine.Close()
}

// openLedger opens the ledger and restores the audits; it repeats that until it succeeds. It returns false if ctx is done.
func (a *Auditor) openLedger(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-a.informed:
	}
	for last := ""; ; {
		engine, err := a.opt.Ledger(ctx)
		if err == nil {
			a.keeper.engine.Store(engine)
			a.stopRecordOnly()
			err = errors.Join(engine.SetProcess(ctx, a.opt.Process), a.recallLabel(ctx))
			if err == nil {
				err = a.restore(ctx, engine)
			}
			if err == nil {
				err = errors.Join(a.startBudget(ctx, engine), a.adopt(ctx, engine), a.recallAcceptances(ctx))
			}
			if err == nil {
				a.keeper.say("")
				a.keeper.release()
				a.review(nil)
				return true
			}
			a.keeper.engine.Store(nil)
			engine.Close()
		}
		if errors.Is(err, ledger.ErrInUse) && a.opt.Recorder != nil {
			if err = a.recordOnly(ctx); err == nil && ctx.Err() == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			return false
		}
		text := a.say(err)
		if a.keeper.say(text); text != last {
			a.opt.Logger.Error("the ledger cannot be used: audits wait, traffic is not affected", zap.String("error", text), zap.Duration("retry_in", a.opt.RetryAfter))
			last = text
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(a.opt.RetryAfter):
		}
	}
}

func (k *keeper) say(trouble string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trouble = trouble
}

// put notes the present state of a job, which save writes. The caller holds Auditor.mu and has the job's turn.
func (k *keeper) put(j *job, p *saved.Progress) {
	if !k.on || p == nil && j.stored {
		return
	}
	audit, err := stored(j, p)
	if err != nil {
		return // a part without a binary form: no value of a job has one
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.puts++
	j.Kept = false
	k.unsaved[j.Key] = unsavedAudit{audit, k.puts}
}

// begin records in the ledger that a job's evidence begins, and returns how often any audit's has, and how often that ended in a violation.
func (k *keeper) begin(ctx context.Context, a *Auditor, j *job) (fleet ledger.Fleet, err error) {
	processes := j.processes + 1
	if k.on {
		a.mu.Lock()
		row, err := stored(j, nil)
		a.mu.Unlock()
		if err == nil {
			row.State = string(view.Running)
			processes, fleet, err = cmp.Or(j.writes, k.engine.Load()).Begin(ctx, row)
		}
		if err != nil {
			return fleet, &ledgerError{err}
		}
	} else if a.opt.Family {
		fleet = ledger.Fleet{Begun: int(a.begun.Add(1)), Reported: int(a.reported.Load())}
	}
	j.processes = processes
	return fleet, nil
}

// save writes the state that put noted for a job. A failure is retried later.
func (a *Auditor) save(ctx context.Context, j *job) {
	if a.keeper.on {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if a.write(ctx, j.Key) == nil {
			a.mu.Lock()
			j.Kept = !a.keeper.waits(j.Key)
			a.mu.Unlock()
		}
	}
}

// waits reports whether a state of an audit is not written yet.
func (k *keeper) waits(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.unsaved[key]
	return ok
}

// write writes the latest state of an audit, if it was not written yet.
func (a *Auditor) write(ctx context.Context, key string) error {
	k := a.keeper
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
	err := k.engine.Load().Save(ctx, row)
	a.wrote(err)
	if err == nil {
		k.mu.Lock()
		if k.unsaved[key].number == u.number {
			delete(k.unsaved, key)
		}
		k.mu.Unlock()
	}
	return err
}

// wrote notes the result of a write, and logs when the ledger goes away and comes back.
func (a *Auditor) wrote(err error) {
	text := ""
	if err != nil {
		text = a.say(err)
	}
	k := a.keeper
	k.mu.Lock()
	before := k.trouble
	k.trouble = text
	k.mu.Unlock()
	switch {
	case text != "" && before == "":
		a.opt.Logger.Error("the ledger cannot be written: evidence is kept in memory and written later, new audits wait", zap.String("error", text))
	case text == "" && before != "":
		a.opt.Logger.Info("the ledger can be written again")
	}
}

// flush writes what is waiting.
func (a *Auditor) flush(ctx context.Context) error {
	if err := a.record(ctx); err != nil {
		return err
	}
	if err := a.saveSpent(ctx); err != nil {
		return err
	}
	a.keeper.mu.Lock()
	keys := make([]string, 0, len(a.keeper.unsaved))
	for key := range a.keeper.unsaved {
		keys = append(keys, key)
	}
	a.keeper.mu.Unlock()
	for _, key := range keys {
		if err := a.write(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// state returns what the status shows; nil without a ledger.
func (k *keeper) state() *view.LedgerState {
	if !k.on {
		return nil
	}
	s := &view.LedgerState{}
	select {
	case <-k.restored:
		s.Restored = true
	default:
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Trouble, s.Unsaved, s.Waiting, s.Lost = k.trouble, len(k.unsaved), len(k.sightings)+len(k.skips), k.lost
	s.Removed = k.removed
	if s.Recorders = k.others; k.recordsOnly {
		holder := k.holder
		s.Holder = &holder
	}
	if k.pending != nil {
		s.Waiting += len(k.pending.Sightings) + len(k.pending.Skips)
	}
	return s
}
