package audit

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite"
)

var errNeighbours = errors.New("the audit compared other neighbours than shadow.d1 lists now")

// restore admits the audits of earlier processes, as far as there are places for them: violations first. The others
// stay in the ledger and go on when their query is captured again. It may be called again after an error.
func (a *Auditor) restore(ctx context.Context, engine *ledger.Engine) error {
	keys, poisoned, err := engine.Audits.Keys(ctx, a.opt.MaxAudits)
	if err != nil {
		return err
	}
	for _, key := range poisoned {
		a.opt.Logger.Error("an audit is not restored: the auditor ended twice while it parsed the statement", zap.String("audit", shortID(key)))
	}
	n := 0
	for _, key := range keys {
		if a.restoredBefore(key) {
			continue
		}
		ok := false
		err := a.contain("restore audit "+shortID(key), func() (err error) { ok, err = a.restoreOne(ctx, key); return err })
		if err != nil && !errors.Is(err, recognize.ErrPanic) { // the audits are restored without one that panics
			return err
		}
		if ok {
			n++
		}
	}
	a.locked(a.retire)
	a.opt.Logger.Info("audits restored from the ledger", zap.Int("audits", n), zap.Int("not_restored", len(keys)-n+len(poisoned)))
	return nil
}

// restoredBefore reports whether an audit was restored before the ledger was lost again. Another process may have gone
// on with it since: its next turn reads its evidence again.
func (a *Auditor) restoredBefore(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.jobs[key]
	if j != nil && j.Phase() == schedule.Queued {
		j.recalled, j.worlds, j.reported, j.evidence = false, nil, nil, nil
	}
	return j != nil
}

// restoreOne restores an audit and reports whether it could be. The error is that of the ledger.
func (a *Auditor) restoreOne(ctx context.Context, key string) (bool, error) {
	row, found, err := a.keeper.Engine.Load().Audits.Find(ctx, key)
	if err != nil || !found {
		return false, err
	}
	leave := func(why string) (bool, error) {
		a.opt.Logger.Warn("an audit is not restored; it stays in the ledger, and its query is audited when it is captured again",
			zap.String("audit", shortID(key)), zap.String("db.query.summary", row.Query.Summary), zap.String("reason", why))
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
	plan, edition, err := parseStored(ctx, a.recognizer, a.keeper.Engine.Load(), key, q)
	switch refused := (*rewrite.UnsupportedError)(nil); {
	case errors.As(err, &refused):
		return leave("its statement cannot be rewritten any more: " + string(refused.Reason))
	case errors.Is(err, recognize.ErrPanic):
		return leave("its statement cannot be rewritten any more: internal error")
	case recognize.ReasonOf(err) == recognize.SkippedUnevaluated:
		return leave(a.say(err))
	case err != nil:
		return false, err
	}
	now, route := identity(&a.opt, q, plan.Key)
	if now != key {
		return leave("its claim, its settings or the configuration of its tables changed, so it is another audit now")
	}
	j := &job{
		Audit: schedule.Audit{
			Key: key, Shape: plan.Shape, Owner: schedule.Owner{User: q.User, Database: q.Database, Route: route},
			Seen: row.Executions, LastSeen: row.Query.LastSeen,
		},
		plan: plan, edition: edition, query: q, answers: row.Query.Destinations, firstSeen: row.Query.FirstSeen, recalled: true, processes: row.Processes,
	}
	j.recallLife(&row)
	return a.readmit(ctx, j, &row)
}

// parseStored parses the statement of a stored audit. Hostile SQL can crash the parser: the ledger knows of the
// attempt.
func parseStored(ctx context.Context, r *recognize.Recognizer, engine *ledger.Engine, key string, q capture.Query) (*rewrite.Plan, uint64, error) {
	if err := engine.Audits.Parsing(ctx, key, false); err != nil {
		return nil, 0, err
	}
	plan, edition, refused := r.Analyze(q)
	if err := engine.Audits.Parsing(ctx, key, true); err != nil {
		return nil, 0, err
	}
	return plan, edition, refused
}

// readmit admits a restored audit with its progress, if there is a place.
func (a *Auditor) readmit(ctx context.Context, j *job, row *ledger.Audit) (bool, error) {
	placed, fault := a.reenter(j, row)
	if fault != nil {
		a.setAside(ctx, j.id, j.Key, fault)
	}
	return placed, nil
}

// reenter adds a restored audit if there is a place. The error says why its progress cannot be used.
func (a *Auditor) reenter(j *job, row *ledger.Audit) (placed bool, fault error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if evicted, refusal := a.roster.Room(&j.Audit); refusal != "" || evicted != nil {
		return false, nil
	}
	a.enter(j)
	if row.Progress != nil {
		fault = a.resume(j, row)
		a.shed()
	}
	return true, fault
}

// setAside reports progress that cannot be used, and moves it out of the way.
func (a *Auditor) setAside(ctx context.Context, id, key string, why error) {
	a.opt.Logger.Error("the stored evidence of an audit cannot be used: it is set aside in the ledger, and the audit starts again",
		zap.String("audit", id), zap.String("reason", a.say(why)))
	if err := a.keeper.Engine.Load().Audits.SetAside(ctx, key, a.say(why)); err != nil {
		a.keeper.Wrote(err)
	}
}

// shortID returns the id of an audit with a key.
func shortID(key string) string { return key[:min(12, len(key))] }
