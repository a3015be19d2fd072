package audit

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// recordOnly writes what this process captures to the ledger while another process audits the engine. It returns when
// it is time to try again to acquire the engine; the error is that of opening the ledger.
func (a *Auditor) recordOnly(ctx context.Context) error {
	k := a.keeper
	r := k.Recorder.Load()
	if r == nil {
		var err error
		if r, err = a.opt.Recorder(ctx); err != nil {
			return err
		}
		k.Recorder.Store(r)
	}
	holder, err := r.Holder(ctx)
	if err != nil {
		return err
	}
	k.SayHolder(holder, a.opt.RetryAfter)
	k.SetTrouble("")
	k.Shares.Store(true)
	defer k.Shares.Store(false)
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
			k.SpoolObservations()
		}
		k.Shares.Store(err == nil) // otherwise the inbox is spooled
	}
}

// handOver writes the observations and the captured queries, those of the spool first, to the ledger.
func (a *Auditor) handOver(ctx context.Context) error {
	err := a.keeper.Record(ctx)
	for err == nil && a.keeper.AttachFile() {
		err = a.keeper.Record(ctx)
	}
	if err != nil {
		return err
	}
	if content, n := a.takeInbox(); n > 0 {
		a.keeper.Attach(content, n, "")
		a.keeper.HandedOver(n)
		return a.keeper.Record(ctx)
	}
	return nil
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
