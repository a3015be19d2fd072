package audit

import (
	"context"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// reaudit begins the audits again for which an operator has asked, by the ledger. Violations stay open, as after a change of the engine.
func (a *Auditor) reaudit(ctx context.Context) error {
	store := a.keeper.engine.Load()
	if store == nil {
		return nil
	}
	keys, err := store.Reaudits(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if !a.beginAsked(key) {
			continue // with a later call
		}
		if err := store.Note(ctx, key, ledger.ActionReaudit, "an operator asked for it"); err != nil {
			return err
		}
		a.opt.Logger.Info("the audit begins again: an operator asked for it", zap.String("audit", shortID(key)))
	}
	return nil
}

// beginAsked begins a decided audit again. It returns false if that must wait, because the audit is not in memory or has a turn.
func (a *Auditor) beginAsked(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.jobs[key]
	if j == nil || j.Busy() {
		return false
	}
	if phase := j.Phase(); phase == schedule.Decided || phase == schedule.Violation || phase == schedule.Watching {
		j.repeats++
		j.previous = j.worst().Verdict
		j.life.released = true
		a.again(j, j.query, j.plan)
	}
	return true
}
