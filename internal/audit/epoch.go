package audit

import (
	"context"
	"time"
)

// epochNow reads the epoch of the copies and logs a change.
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
		a.idle.clear() // their tables are computed from the old copies
		a.opt.Logger.Info("the copies were made anew; audits that are not decided begin anew, decided ones when their query comes again")
	}
	return epoch, nil
}

// watchEpoch checks the copies periodically, so that a query that is run again is audited on new ones.
func (a *Auditor) watchEpoch(ctx context.Context) {
	tick := time.NewTicker(a.opt.EpochEvery)
	defer tick.Stop()
	for {
		_, _ = a.epochNow(ctx) // checkShadow and the audits report errors
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// current ensures that a job's evidence belongs to the present copies: other evidence is dropped, because one audit must
// not mix two pairs of datasets. fresh reports that nothing had to be dropped. The caller has the job's turn.
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
	j.hoist = nil // its state belongs to the old copies
	j.restarts++
	j.epoch = epoch
	return false, a.resetEvidence(j)
}

// outdated reports whether a decided audit belongs to copies that no longer exist. The caller holds a.mu.
func (a *Auditor) outdated(j *job) bool {
	return j.state() == Decided && j.epoch != "" && a.epoch != "" && j.epoch != a.epoch
}
