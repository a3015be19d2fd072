package audit

import (
	"context"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
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
		a.opt.Logger.Info("the copies were replaced: undecided audits start again now, decided ones when their query is run again")
	}
	return epoch, nil
}

// watchEpoch checks the copies periodically, so that a query that is run again is audited on new ones.
func (a *Auditor) watchEpoch(ctx context.Context) {
	tick := time.NewTicker(a.opt.EpochEvery)
	defer tick.Stop()
	for {
		_, _ = a.epochNow(ctx) // checkShadow and the audits report errors
		a.watchEngine(ctx)
		select {
		case <-ctx.Done():
			return
		case <-a.deployed:
		case <-tick.C:
		}
	}
}

// current ensures that a job's evidence belongs to the present copies and the present engine: other evidence is
// dropped, because one audit must not mix two pairs of datasets. fresh reports that nothing had to be dropped. The
// caller has the job's turn.
func (a *Auditor) current(ctx context.Context, j *job) (fresh bool, err error) {
	epoch, same, err := a.sameAsNow(ctx, j)
	if same || err != nil {
		return same, err
	}
	share, err := a.allot(ctx, j)
	if err != nil {
		return false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stand(j)
	j.hoist = nil // its state belongs to the old copies and functions
	if j.epoch != epoch {
		j.restarts++
		j.epoch = epoch
	}
	a.adoptEngine(j)
	return false, a.resetEvidence(j, share)
}

// lately is the age up to which a reading of the copies and the engine is used again when a turn begins. Reading them
// opens a session.
const lately = 200 * time.Millisecond

// currentLately is current for a turn that begins: it does not read again what was read just now. What changed since is
// noticed at the end of the turn, as what changes during the turn.
func (a *Auditor) currentLately(ctx context.Context, j *job) (fresh bool, err error) {
	same := false
	a.locked(func() { same = a.readJustNow() && j.epoch == a.epoch && a.sameEngine(j) })
	if same {
		return true, nil
	}
	return a.current(ctx, j)
}

// readLately reads the copies' epoch and the engine, unless they were read just now.
func (a *Auditor) readLately(ctx context.Context) error {
	lately := false
	a.locked(func() { lately = a.readJustNow() })
	if lately {
		return nil
	}
	_, err := a.readNow(ctx)
	return err
}

// readJustNow reports whether the copies' epoch and the engine were read just now. The caller holds Auditor.mu.
func (a *Auditor) readJustNow() bool { return time.Since(a.read) < lately }

// readNow reads the copies' epoch and the engine.
func (a *Auditor) readNow(ctx context.Context) (epoch string, err error) {
	began := time.Now()
	if epoch, err = a.epochNow(ctx); err == nil {
		err = a.engineNow(ctx)
	}
	if err == nil {
		a.mu.Lock()
		a.read = began
		a.mu.Unlock()
	}
	return epoch, err
}

// outdated reports whether a decided audit belongs to copies that no longer exist. The caller holds a.mu.
func (a *Auditor) outdated(j *job) bool {
	return j.state() == view.Decided && j.Phase() != schedule.Watching && j.epoch != "" && a.epoch != "" && j.epoch != a.epoch
}

// due reports whether an audit without a violation was decided so long ago that it is repeated. The caller holds a.mu.
func (a *Auditor) due(j *job) bool {
	return j.Phase() == schedule.Decided && a.repeatDue(j)
}

// repeatDue reports whether a decided audit was decided so long ago that it is repeated. The caller holds a.mu.
func (a *Auditor) repeatDue(j *job) bool {
	return a.opt.Repeat > 0 && !j.decided.IsZero() && a.opt.Now().Sub(j.decided) >= a.opt.Repeat
}
