package audit

import (
	"context"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/read"
)

// reaudit begins the audits again for which an operator has asked, by the ledger. Violations stay open, as after a
// change of the engine.
func (a *Auditor) reaudit(ctx context.Context) error {
	store := a.keeper.Engine.Load()
	if store == nil {
		return nil
	}
	keys, err := store.Audits.Reaudits(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		begun := false
		if a.locked(func() { begun = a.beginAsked(key) }); !begun {
			continue // with a later call
		}
		if err := store.Audits.Note(ctx, key, read.ActionReaudit, "an operator asked for it"); err != nil {
			return err
		}
		a.mu.Lock()
		delete(a.wished, key)
		a.mu.Unlock()
		a.opt.Logger.Info("the audit begins again: an operator asked for it", zap.String("audit", shortID(key)))
	}
	return nil
}

// beginAsked begins a decided audit again, and returns whether the ledger has the beginning: until then a process that
// ends leaves the wish to the next one. It does nothing if the audit is not in memory or has a turn.
func (d *desk) beginAsked(key string) bool {
	j := d.jobs[key]
	if j == nil || j.Busy() {
		return false
	}
	phase := j.Phase()
	decided := phase == schedule.Decided || phase == schedule.Violation || phase == schedule.Watching
	if before, asked := d.wished[key]; asked {
		return decided || j.processes > before // decided without evidence: the query cannot be replayed any more
	}
	if decided {
		d.wished[key] = j.processes
		j.repeats++
		j.previous = j.worst().Verdict
		j.life.released = true
		d.again(j, j.query, j.plan, j.edition)
	}
	_, waits := d.wished[key]
	return !waits
}
