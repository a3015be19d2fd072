package audit

import (
	"context"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/fleet"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/rewrite"
)

// operators reads from the ledger what operators decided.
type operators struct {
	opt    *Options
	use    useDesk
	stages *fleet.Stages
	keeper *keep.Keeper
}

// recallAcceptances reads the acceptances from the ledger. It ends those whose date has passed or whose engine has
// changed; then, and if one was revoked, the alert of the violation is sent again.
func (o *operators) recallAcceptances(ctx context.Context) error {
	store := o.keeper.Engine.Load()
	if store == nil {
		return nil
	}
	all, err := store.Audits.Acceptances(ctx)
	if err != nil {
		return err
	}
	if err := o.recallAway(ctx, store, all); err != nil {
		return err
	}
	var present, revoked []*ledger.Acceptance
	var over []desk.EndedAcceptance
	o.use(func(d *desk.Desk) { present, revoked, over = d.Acceptances.Adopt(all) })
	for _, c := range present {
		o.opt.Logger.Info("a violation is accepted: it sends no alerts", zap.String("audit", desk.ShortID(c.Key)), zap.String("operator", c.Operator), zap.Time("until", c.Until))
	}
	for _, c := range revoked {
		o.endAcceptance(c, "an operator revoked it")
	}
	for _, e := range over {
		switch ended, err := store.Audits.EndAcceptance(ctx, e.ID, e.Why); {
		case err != nil:
			return err
		case ended:
			o.use(func(d *desk.Desk) { d.Acceptances.Remove(e.Key) })
			o.endAcceptance(e.Acceptance, e.Why)
		}
	}
	return nil
}

// endAcceptance logs the end of an acceptance and sends the alert of its violation, if there still is one.
func (o *operators) endAcceptance(c *ledger.Acceptance, why string) {
	var f alert.Finding
	open := false
	o.use(func(d *desk.Desk) { f, open = d.Acceptances.Finding(c) })
	o.opt.Logger.Warn("the acceptance of a violation has ended", zap.String("audit", desk.ShortID(c.Key)), zap.String("db.query.summary", c.Summary),
		zap.String("reason", why), zap.String("operator", c.Operator), zap.Bool("violation", open))
	if open && o.opt.OnFinding != nil {
		f.Reason = "its acceptance has ended: " + why
		o.opt.OnFinding(f)
	}
}

// recallAway reads, once for each acceptance, what the query calls whose audit is not in memory: it was evicted, or had
// no place after a restart. So another engine ends that acceptance, too. It is not known for a statement that the
// ledger does not have, or that cannot be rewritten any more.
func (o *operators) recallAway(ctx context.Context, store *ledger.Engine, all []ledger.Acceptance) error {
	for i := range all {
		key := all[i].Key
		known := false
		o.use(func(d *desk.Desk) { known = d.Acceptances.Known(key) })
		if known || all[i].EngineEpoch == "" {
			continue
		}
		plan, err := o.storedPlan(ctx, store, key)
		if err != nil {
			return err
		}
		o.use(func(d *desk.Desk) { d.Acceptances.SetAway(key, plan) })
	}
	return nil
}

// storedPlan returns the plan of a stored audit's query; nil if it cannot be known. The error is that of the ledger.
func (o *operators) storedPlan(ctx context.Context, store *ledger.Engine, key string) (*rewrite.Plan, error) {
	row, found, err := store.Audits.Find(ctx, key)
	if err != nil || !found || row.Poisoned || row.Query.Unreadable != nil {
		return nil, err
	}
	q, err := capture.DecodeBinary(row.Query.Statement)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // it was captured by another version
	}
	plan, _, err := o.stages.Recognizer.AnalyzeStored(ctx, store, key, q)
	switch {
	case err != nil && recognize.ReasonOf(err) == recognize.SkippedOther: // an error of the ledger
		return nil, err
	case err != nil:
		return nil, nil //nolint:nilnil // see above
	}
	if now, _ := identity(o.opt, q, plan.Key); now != key {
		return nil, nil //nolint:nilnil // see above
	}
	return plan, nil
}

// reaudit begins the audits again for which an operator has asked, by the ledger. Violations stay open, as after a
// change of the engine.
func (o *operators) reaudit(ctx context.Context) error {
	store := o.keeper.Engine.Load()
	if store == nil {
		return nil
	}
	keys, err := store.Audits.Reaudits(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		begun := false
		if o.use(func(d *desk.Desk) { begun = d.Requests.Begin(key) }); !begun {
			continue // with a later call
		}
		if err := store.Audits.Note(ctx, key, read.ActionReaudit, "an operator asked for it"); err != nil {
			return err
		}
		o.use(func(d *desk.Desk) { d.Requests.Noted(key) })
		o.opt.Logger.Info("the audit begins again: an operator asked for it", zap.String("audit", desk.ShortID(key)))
	}
	return nil
}
