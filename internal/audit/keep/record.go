package keep

import (
	"context"
	"encoding/binary"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

// batchWriter is the part of the ledger to which every process of an engine writes: a ledger.Engine or a
// ledger.Recorder.
type batchWriter interface {
	Term() int64
	Record(ctx context.Context, b ledger.Batch) error
	SetLabel(ctx context.Context, label string) error
}

// Writer returns where batches are written now; nil if the ledger is not open.
func (k *Keeper) Writer() batchWriter {
	if e := k.Engine.Load(); e != nil {
		return e
	}
	if r := k.Recorder.Load(); r != nil {
		return r
	}
	return nil
}

// term returns the term of the writer; 0 = the process ends before it had the ledger.
func (k *Keeper) term() int64 {
	if w := k.Writer(); w != nil {
		return w.Term()
	}
	return 0
}

// Record writes the observations since the last write. A batch whose write failed is written again with its number, so
// that it counts once.
func (k *Keeper) Record(ctx context.Context) error {
	k.recording.Lock()
	defer k.recording.Unlock()
	if err := k.recordSpooled(ctx); err != nil {
		k.Wrote(err)
		return err
	}
	for {
		b := k.batch(k.term)
		if b == nil {
			return nil
		}
		err := k.Writer().Record(ctx, *b)
		if k.Wrote(err); err != nil {
			return err
		}
		if s := k.Spool(); s != nil && b.File != "" {
			_ = s.Remove(b.File) // the ledger remembers it
		}
		k.done()
	}
}

// Ready reports whether the ledger can be written, as far as is known, and no batch waits.
func (k *Keeper) Ready() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Engine.Load() != nil && k.trouble == "" && !k.pends()
}

// SpoolObservations moves observations that could not be written to the spool, as far as it has room.
func (k *Keeper) SpoolObservations() {
	k.recording.Lock()
	defer k.recording.Unlock()
	s := k.Spool()
	if s == nil {
		return
	}
	for b := k.batch(k.term); b != nil && b.File == "" && b.Captured == 0; b = k.batch(k.term) { // what comes from a file, or from another process, is still there
		b.WithoutTexts()
		if err := s.PutBatch(*b); err != nil {
			k.SaySpoolFull(err)
			return
		}
		k.done()
	}
}

// recordSpooled writes the spooled observations. The caller holds k.recording.
func (k *Keeper) recordSpooled(ctx context.Context) error {
	s := k.Spool()
	if s == nil {
		return nil
	}
	for {
		name, b, err := s.FirstBatch()
		switch {
		case err != nil:
			k.log.Error("observations in the spool cannot be written to the ledger", zap.String("error", k.text(err)))
			continue
		case name == "":
			return nil
		}
		if b.Term == 0 {
			b.File = name
		}
		if err = k.Writer().Record(ctx, b); err != nil {
			return err
		}
		if err := s.Remove(name); err != nil {
			k.log.Warn("a spooled file cannot be removed; it does not count twice", zap.String("error", k.text(err)))
		}
	}
}

// AttachFile puts the queries of the first spooled file in the next batch, and reports whether there is one.
func (k *Keeper) AttachFile() bool {
	s := k.Spool()
	if s == nil {
		return false
	}
	name, content, err := s.First(ledger.SpooledQueries)
	if err != nil {
		k.log.Error("captured queries in the spool cannot be recorded", zap.String("error", k.text(err)))
	}
	if err != nil || name == "" {
		return false
	}
	n := 0
	EachQuery(content, func(int, []byte) { n++ })
	k.Attach(content, n, name)
	return true
}

// EachQuery calls f with each query of the content that takeInbox returned, and its position.
func EachQuery(content []byte, f func(part int, one []byte)) {
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

// SayHolder logs which process audits the engine, when that changes.
func (k *Keeper) SayHolder(holder ledger.Process, retry time.Duration) {
	k.mu.Lock()
	changed := !k.recordsOnly || k.holder != holder
	k.recordsOnly, k.holder = true, holder
	k.mu.Unlock()
	if !changed {
		return
	}
	k.log.Info("another process audits this engine with the same ledger: this one records what it captures, and takes over when the other one ends",
		zap.String("engine_holder", holder.Host), zap.Duration("retry_in", retry))
	if Differs(holder, k.self) {
		k.log.Warn("the process that audits this engine has another configuration of claims, tables, copies or audits: its own applies to what this process captures; use one configuration for all",
			zap.String("engine_holder", holder.Host))
	}
}

// Differs reports whether two processes are known to have different configurations.
func Differs(p, q ledger.Process) bool {
	return p.Configuration != "" && q.Configuration != "" && p.Configuration != q.Configuration
}

// StopRecordOnly ends the recording for another process, because this one has the engine.
func (k *Keeper) StopRecordOnly() {
	if r := k.Recorder.Swap(nil); r != nil {
		r.Close()
	}
	k.mu.Lock()
	took := k.recordsOnly
	k.recordsOnly, k.holder = false, ledger.Process{}
	k.mu.Unlock()
	if took {
		k.log.Info("this process has taken over the audits of the engine")
	}
}

// NotRecorded is the reason in the ledger of executions whose query was not recorded, because the ledger was away for
// too long.
const NotRecorded = "not_recorded"
