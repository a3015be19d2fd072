package audit

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/fleet"
	"github.com/dpwatch/dpwatch/internal/audit/guard"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite"
)

// restorer takes audits of earlier processes from the ledger to the desk.
type restorer struct {
	opt    *Options
	use    useDesk
	guard  *guard.Guard
	stages *fleet.Stages
	keeper *keep.Keeper
}

// restore admits the audits of earlier processes, as far as there are places for them: violations first. The others
// stay in the ledger and go on when their query is captured again. It may be called again after an error.
func (r *restorer) restore(ctx context.Context, engine *ledger.Engine) error {
	controls, err := engine.Audits.Controls(ctx)
	if err != nil {
		return err
	}
	r.use(func(d *desk.Desk) { d.Controls.Recall(controls) })
	keys, poisoned, err := engine.Audits.Keys(ctx, r.opt.MaxAudits)
	if err != nil {
		return err
	}
	for _, key := range poisoned {
		r.opt.Logger.Error("an audit is not restored: the auditor ended twice while it parsed the statement", zap.String("audit", desk.ShortID(key)))
	}
	n := 0
	for _, key := range keys {
		before := false
		if r.use(func(d *desk.Desk) { before = d.Restoration.Before(key) }); before {
			continue
		}
		ok := false
		err := r.guard.Contain("restore audit "+desk.ShortID(key), func() (err error) { ok, err = r.restoreOne(ctx, key); return err })
		if err != nil && !errors.Is(err, recognize.ErrPanic) { // the audits are restored without one that panics
			return err
		}
		if ok {
			n++
		}
	}
	r.use(func(d *desk.Desk) { d.Restoration.Ended() })
	r.opt.Logger.Info("audits restored from the ledger", zap.Int("audits", n), zap.Int("not_restored", len(keys)-n+len(poisoned)))
	return nil
}

// restoreOne restores an audit and reports whether it could be. The error is that of the ledger.
func (r *restorer) restoreOne(ctx context.Context, key string) (placed bool, err error) {
	row, found, err := r.keeper.Engine.Load().Audits.Find(ctx, key)
	if err != nil || !found {
		return false, err
	}
	leave := func(why string) (bool, error) {
		r.opt.Logger.Warn("an audit is not restored; it stays in the ledger, and its query is audited when it is captured again",
			zap.String("audit", desk.ShortID(key)), zap.String("db.query.summary", row.Query.Summary), zap.String("reason", why))
		return false, nil
	}
	if err := row.Query.Unreadable; errors.Is(err, ledger.ErrWithheld) {
		return false, nil // by configuration: no warning for each audit
	} else if err != nil {
		return leave("the ledger's statement cannot be read: " + err.Error())
	}
	q, err := capture.DecodeBinary(row.Query.Statement)
	if err != nil {
		return leave("its statement was captured by another version")
	}
	plan, edition, err := r.stages.Recognizer.AnalyzeStored(ctx, r.keeper.Engine.Load(), key, q)
	switch refused := (*rewrite.UnsupportedError)(nil); {
	case errors.As(err, &refused):
		return leave("its statement cannot be rewritten any more: " + string(refused.Reason))
	case errors.Is(err, recognize.ErrPanic):
		return leave("its statement cannot be rewritten any more: internal error")
	case recognize.ReasonOf(err) == recognize.SkippedUnevaluated:
		return leave(r.opt.say(err))
	case err != nil:
		return false, err
	}
	now, route := identity(r.opt, q, plan.Key)
	if now != key {
		return leave("its claim, its settings or the configuration of its tables changed, so it is another audit now")
	}
	var fault error
	r.use(func(d *desk.Desk) {
		placed, fault = d.Restoration.Enter(&desk.Stored{Key: key, Route: route, Query: q, Plan: plan, Edition: edition, Row: &row})
	})
	if fault != nil {
		fleet.SetAside(ctx, r.keeper, r.opt.Logger, r.opt.say, key, fault)
	}
	return placed, nil
}
