package audit

import (
	"context"
	"encoding/binary"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// batchWriter is the part of the ledger to which every process of an engine writes: a ledger.Engine or a ledger.Recorder.
type batchWriter interface {
	Term() int64
	Record(ctx context.Context, b ledger.Batch) error
	SetLabel(ctx context.Context, label string) error
}

// writer returns where batches are written now; nil if the ledger is not open.
func (k *keeper) writer() batchWriter {
	if e := k.engine.Load(); e != nil {
		return e
	}
	if r := k.recorder.Load(); r != nil {
		return r
	}
	return nil
}

// recordOnly writes what this process captures to the ledger while another process audits the engine. It returns when it is time
// to try again to acquire the engine; the error is that of opening the ledger.
func (a *Auditor) recordOnly(ctx context.Context) error {
	k := a.keeper
	r := k.recorder.Load()
	if r == nil {
		var err error
		if r, err = a.opt.Recorder(ctx); err != nil {
			return err
		}
		k.recorder.Store(r)
	}
	holder, err := r.Holder(ctx)
	if err != nil {
		return err
	}
	a.sayHolder(holder)
	k.say("")
	k.shares.Store(true)
	defer k.shares.Store(false)
	tick, last := time.NewTicker(intakeEvery), time.Time{} // zero: retry_after may be shorter than keepEvery
	defer tick.Stop()
	for again := time.After(a.opt.RetryAfter); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-again:
			return nil
		case <-tick.C:
		}
		if time.Since(last) < keepEvery && !a.inbox.Beyond(2) {
			continue
		}
		last = time.Now()
		a.storeLabel(ctx)
		err := a.handOver(ctx)
		if err != nil && ctx.Err() == nil {
			a.spoolObservations()
		}
		k.shares.Store(err == nil) // otherwise the inbox is spooled
	}
}

// handOver writes the observations and the captured queries, those of the spool first, to the ledger.
func (a *Auditor) handOver(ctx context.Context) error {
	err := a.record(ctx)
	for err == nil && a.attachFile() {
		err = a.record(ctx)
	}
	if err != nil {
		return err
	}
	if content, n := a.takeInbox(); n > 0 {
		a.keeper.attach(content, n, "")
		return a.record(ctx)
	}
	return nil
}

// attachFile puts the queries of the first spooled file in the next batch, and reports whether there is one.
func (a *Auditor) attachFile() bool {
	s := a.spool.get(a)
	if s == nil {
		return false
	}
	name, content, err := s.First(ledger.SpooledQueries)
	if err != nil {
		a.opt.Logger.Error("captured queries in the spool cannot be recorded", zap.String("error", a.say(err)))
	}
	if err != nil || name == "" {
		return false
	}
	n := 0
	eachQuery(content, func(int, []byte) { n++ })
	a.keeper.attach(content, n, name)
	return true
}

// attach puts captured queries in the next batch. The batch before it has been written.
func (k *keeper) attach(content []byte, statements int, file string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queries, k.statements, k.file = content, statements, file
}

// takeInbox empties the inbox; each query has its length before it.
func (a *Auditor) takeInbox() (content []byte, n int) {
	held, _ := a.inbox.Held()
	for ; n < held; n++ { // not what arrives meanwhile: the result is bounded as the inbox is
		x, ok := a.inbox.Next()
		if !ok {
			break
		}
		one := capture.AppendBinary(nil, x.Query)
		content = append(binary.AppendUvarint(content, uint64(len(one))), one...)
	}
	return content, n
}

// eachQuery calls f with each query of the content that takeInbox returned, and its position.
func eachQuery(content []byte, f func(part int, one []byte)) {
	for part := 0; len(content) > 0; part++ {
		n, used := binary.Uvarint(content)
		if used <= 0 || n > uint64(len(content)-used) {
			return // its checksum is right: it was written so
		}
		end := used + int(n) //nolint:gosec // at most its length
		f(part, content[used:end])
		content = content[end:]
	}
}

// sayHolder logs which process audits the engine, when that changes.
func (a *Auditor) sayHolder(holder ledger.Process) {
	k := a.keeper
	k.mu.Lock()
	changed := !k.recordsOnly || k.holder != holder
	k.recordsOnly, k.holder = true, holder
	k.mu.Unlock()
	if !changed {
		return
	}
	a.opt.Logger.Info("another process audits this engine with the same ledger: this one records what it captures, and takes over when the other one ends",
		zap.String("engine_holder", holder.Host), zap.Duration("retry_in", a.opt.RetryAfter))
	if differs(holder, a.opt.Process) {
		a.opt.Logger.Warn("the process that audits this engine has another configuration of claims, tables, copies or audits: its own applies to what this process captures; use one configuration for all",
			zap.String("engine_holder", holder.Host))
	}
}

// differs reports whether two processes are known to have different configurations.
func differs(p, q ledger.Process) bool {
	return p.Configuration != "" && q.Configuration != "" && p.Configuration != q.Configuration
}

// stopRecordOnly ends the recording for another process, because this one has the engine.
func (a *Auditor) stopRecordOnly() {
	k := a.keeper
	if r := k.recorder.Swap(nil); r != nil {
		r.Close()
	}
	k.mu.Lock()
	took := k.recordsOnly
	k.recordsOnly, k.holder = false, ledger.Process{}
	k.mu.Unlock()
	if took {
		a.opt.Logger.Info("this process has taken over the audits of the engine")
	}
}
