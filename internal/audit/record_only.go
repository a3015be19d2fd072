package audit

import (
	"context"
	"time"
)

// recordOnly writes what this process captures to the ledger while another process audits the engine. It returns when
// it is time to try again to acquire the engine; the error is that of opening the ledger.
func (k *keeping) recordOnly(ctx context.Context) error {
	r := k.keeper.Recorder.Load()
	if r == nil {
		var err error
		if r, err = k.opt.Recorder(ctx); err != nil {
			return err
		}
		k.keeper.Recorder.Store(r)
	}
	holder, err := r.Holder(ctx)
	if err != nil {
		return err
	}
	k.keeper.SayHolder(holder, k.opt.RetryAfter)
	k.keeper.SetTrouble("")
	k.keeper.Shares.Store(true)
	defer k.keeper.Shares.Store(false)
	tick, last := time.NewTicker(intakeEvery), time.Time{} // zero: retry_after may be shorter than keepEvery
	defer tick.Stop()
	for again := time.After(k.opt.RetryAfter); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-again:
			return nil
		case <-tick.C:
		}
		if time.Since(last) < keepEvery && !k.intake.inbox.Beyond(2) {
			continue
		}
		last = time.Now()
		k.surroundings.storeLabel(ctx)
		err := k.handOver(ctx)
		if err != nil && ctx.Err() == nil {
			k.keeper.SpoolObservations()
		}
		k.keeper.Shares.Store(err == nil) // otherwise the inbox is spooled
	}
}

// handOver writes the observations and the captured queries, those of the spool first, to the ledger.
func (k *keeping) handOver(ctx context.Context) error {
	err := k.keeper.Record(ctx)
	for err == nil && k.keeper.AttachFile() {
		err = k.keeper.Record(ctx)
	}
	if err != nil {
		return err
	}
	if content, n := k.intake.takeInbox(); n > 0 {
		k.keeper.Attach(content, n, "")
		k.keeper.HandedOver(n)
		return k.keeper.Record(ctx)
	}
	return nil
}
