package audit

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// keepEvery is the interval at which observations are written to the ledger, and failed writes are retried.
const keepEvery = time.Second

// maxObservations bounds the observations that wait to be written; beyond it they are counted as lost.
const maxObservations = 16384

// keeper writes to the ledger what must outlive the process. Without a ledger it does nothing.
type keeper struct {
	on       bool                          // there is a ledger
	engine   atomic.Pointer[ledger.Engine] // set before restored is closed
	restored chan struct{}                 // closed when the audits of earlier processes are restored, or there is no ledger
	once     sync.Once                     // closes restored

	recording sync.Mutex // one writer of observations at a time

	writing sync.Mutex // one write of an audit at a time, so that an earlier state does not replace a later one

	mu        sync.Mutex              // guards the fields below
	unsaved   map[string]unsavedAudit // states that are not written yet, by key
	puts      uint64
	sightings map[sighted]*ledger.Sighting
	skips     map[skippedIn]int64
	pending   *ledger.Batch // its write failed, perhaps after it took effect
	holding   bool          // a spooled file is being submitted: its observations go into one batch
	file      string        // the file whose observations the next batch has; "" = none
	seq       int64
	lost      uint64 // executions and skipped statements that were not recorded
	trouble   string // why the last write failed; "" = it did not
	removed   Removed
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
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			switch err := a.flush(ctx); {
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
	a.spoolInbox(0)
	engine := a.keeper.engine.Load()
	if engine == nil {
		a.spoolObservations()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
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
			if err = a.recallLabel(ctx); err == nil {
				err = a.restore(ctx, engine)
			}
			if err == nil {
				err = errors.Join(a.startBudget(ctx, engine), a.adopt(ctx, engine))
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
func (k *keeper) put(j *job, p *progress) {
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
	k.unsaved[j.Key] = unsavedAudit{audit, k.puts}
}

// begin records in the ledger that a job's evidence begins, and returns how often any audit's has.
func (k *keeper) begin(ctx context.Context, a *Auditor, j *job) (begun int, err error) {
	processes := j.processes + 1
	if k.on {
		a.mu.Lock()
		row, err := stored(j, nil)
		a.mu.Unlock()
		if err == nil {
			row.State = string(Running)
			processes, begun, err = cmp.Or(j.writes, k.engine.Load()).Begin(ctx, row)
		}
		if err != nil {
			return 0, &ledgerError{err}
		}
	} else if a.opt.Family {
		begun = int(a.begun.Add(1))
	}
	j.processes = processes
	return begun, nil
}

// save writes the state that put noted for a job. A failure is retried later.
func (a *Auditor) save(ctx context.Context, j *job) {
	if a.keeper.on {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = a.write(ctx, j.Key)
	}
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

// record writes the observations since the last write. A batch whose write failed is written again with its number, so that
// it counts once.
func (a *Auditor) record(ctx context.Context) error {
	k := a.keeper
	k.recording.Lock()
	defer k.recording.Unlock()
	if err := a.recordSpooled(ctx); err != nil {
		a.wrote(err)
		return err
	}
	for {
		b := k.batch()
		if b == nil {
			return nil
		}
		err := k.engine.Load().Record(ctx, *b)
		if a.wrote(err); err != nil {
			return err
		}
		if s := a.spool.get(a); s != nil && b.File != "" {
			_ = s.Remove(b.File) // the ledger remembers it
		}
		k.done()
	}
}

// done forgets the batch that was written.
func (k *keeper) done() {
	k.mu.Lock()
	k.pending = nil
	k.mu.Unlock()
}

// ready reports whether the ledger can be written, as far as is known, and no batch waits.
func (k *keeper) ready() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.engine.Load() != nil && k.trouble == "" && k.pending == nil
}

// hold collects all observations until submitted is called.
func (k *keeper) hold() {
	k.mu.Lock()
	k.holding = true
	k.mu.Unlock()
}

// submitted puts the observations since hold into one batch, which comes from a spooled file.
func (k *keeper) submitted(file string) {
	k.mu.Lock()
	k.holding, k.file = false, file
	k.mu.Unlock()
}

// batch returns the next batch to write, nil if nothing is waiting.
func (k *keeper) batch() *ledger.Batch {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pending != nil || k.holding || len(k.sightings)+len(k.skips) == 0 && k.file == "" {
		return k.pending
	}
	k.seq++
	b := &ledger.Batch{Seq: k.seq, File: k.file}
	if engine := k.engine.Load(); engine != nil { // nil = the process ends before it had the ledger
		b.Term = engine.Term()
	}
	k.file = ""
	for s := range maps.Values(k.sightings) {
		b.Sightings = append(b.Sightings, *s)
	}
	for s, n := range k.skips {
		b.Skips = append(b.Skips, ledger.Skip{Reason: s.reason, Hour: time.Unix(s.hour, 0), Statements: n})
	}
	clear(k.sightings)
	clear(k.skips)
	k.pending = b
	return b
}

// see counts an execution of a DP query. placed means that the query has an audit; otherwise skip counts the execution too.
func (k *keeper) see(key string, query ledger.Query, q capture.Query, placed bool) {
	if !k.on {
		return
	}
	at := sighted{key, q.User, q.Database, q.ApplicationName, ledger.Hour(q.Completed).Unix()}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sightings[at]
	switch {
	case s == nil && len(k.sightings) >= maxObservations:
		k.lost++
		if placed {
			k.skips[skippedIn{NotRecorded, at.hour}]++
		}
		return
	case s == nil:
		query.Key, query.FirstSeen = key, q.Completed
		s = &ledger.Sighting{Query: query, User: q.User, Database: q.Database, Application: q.ApplicationName}
		k.sightings[at] = s
	}
	s.Executions++
	if !placed {
		s.Unplaced++
	}
	s.Query.LastSeen = q.Completed
}

// skip counts statements that are not audited.
func (k *keeper) skip(reason string, n uint64, now time.Time) {
	if !k.on {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.skips[skippedIn{reason, ledger.Hour(now).Unix()}] += int64(n) //nolint:gosec // a number of statements
}

// state returns what the status shows; nil without a ledger.
func (k *keeper) state() *LedgerState {
	if !k.on {
		return nil
	}
	s := &LedgerState{}
	select {
	case <-k.restored:
		s.Restored = true
	default:
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Trouble, s.Unsaved, s.Waiting, s.Lost = k.trouble, len(k.unsaved), len(k.sightings)+len(k.skips), k.lost
	s.Removed = k.removed
	if k.pending != nil {
		s.Waiting += len(k.pending.Sightings) + len(k.pending.Skips)
	}
	return s
}
