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

// Attach puts captured queries in the next batch. The batch before it has been written.
func (k *Keeper) Attach(content []byte, statements int, file string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queries, k.statements, k.file = content, statements, file
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
