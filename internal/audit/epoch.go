package audit

import (
	"context"
	"time"
)

// epochNow asks whether the copies are still the same, and tells when they are not.
func (a *Auditor) epochNow(ctx context.Context) (string, error) {
	epoch, err := a.opt.Player.Epoch(ctx, append([]string{a.opt.D0}, a.opt.D1...))
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	before := a.epoch
	a.epoch = epoch
	a.mu.Unlock()
	if before != "" && before != epoch {
		a.idle.clear() // their tables are of the old copies
		a.opt.Logger.Info("the copies were made anew; audits that are not decided begin anew, decided ones when their query comes again")
	}
	return epoch, nil
}

// watchEpoch looks at the copies now and then, so that a query that comes again is audited on new ones.
func (a *Auditor) watchEpoch(ctx context.Context) {
	tick := time.NewTicker(a.opt.EpochEvery)
	defer tick.Stop()
	for {
		_, _ = a.epochNow(ctx) // what is wrong is told by checkShadow and by the audits
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// current makes sure that a job's evidence is of the copies that are there now: evidence of others is dropped, since one
// audit must not mix two pairs of datasets. fresh says that nothing had to be dropped. The caller has the job's turn.
func (a *Auditor) current(ctx context.Context, j *job) (fresh bool, err error) {
	epoch, err := a.epochNow(ctx)
	if err != nil {
		return false, err
	}
	if j.epoch == "" {
		j.epoch = epoch
	}
	if j.epoch == epoch {
		return true, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	j.hoist = nil // what was computed once is of the old copies
	j.restarts++
	j.epoch = epoch
	return false, a.resetEvidence(j)
}

// outdated reports whether a decided audit is of copies that are no more. The caller holds a.mu.
func (a *Auditor) outdated(j *job) bool {
	return j.state() == Decided && j.epoch != "" && a.epoch != "" && j.epoch != a.epoch
}
