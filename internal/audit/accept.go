package audit

import (
	"context"
	"encoding/json"
	"maps"
	"math"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// recallAcceptances reads the acceptances from the ledger. It ends those whose date has passed or whose engine has
// changed; then, and if one was revoked, the alert of the violation is sent again.
func (a *Auditor) recallAcceptances(ctx context.Context) error {
	store := a.keeper.Engine.Load()
	if store == nil {
		return nil
	}
	all, err := store.Audits.Acceptances(ctx)
	if err != nil {
		return err
	}
	if err := a.recallAway(ctx, store, all); err != nil {
		return err
	}
	present, revoked, over := a.adoptAcceptances(all)
	for _, c := range present {
		a.opt.Logger.Info("a violation is accepted: it sends no alerts", zap.String("audit", shortID(c.Key)), zap.String("operator", c.Operator), zap.Time("until", c.Until))
	}
	for _, c := range revoked {
		a.endAcceptance(c, "an operator revoked it")
	}
	for _, e := range over {
		switch ended, err := store.Audits.EndAcceptance(ctx, e.ID, e.why); {
		case err != nil:
			return err
		case ended:
			a.mu.Lock()
			delete(a.accepted, e.Key)
			a.mu.Unlock()
			a.endAcceptance(e.Acceptance, e.why)
		}
	}
	return nil
}

// endedAcceptance is an acceptance that is no longer in force, and why.
type endedAcceptance struct {
	*ledger.Acceptance
	why string
}

// adoptAcceptances replaces the acceptances by those that the ledger has now. It returns the new ones, those that are
// there no more, and those that are no longer in force.
func (a *Auditor) adoptAcceptances(all []ledger.Acceptance) (present, revoked []*ledger.Acceptance, over []endedAcceptance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := make(map[string]*ledger.Acceptance, len(all))
	for i := range all {
		c := &all[i]
		now[c.Key] = c
		if why := a.overdue(c); why != "" {
			over = append(over, endedAcceptance{c, why})
		} else if before := a.accepted[c.Key]; before == nil || before.ID != c.ID {
			present = append(present, c)
		}
	}
	for key, before := range a.accepted {
		if now[key] == nil {
			revoked = append(revoked, before)
		}
	}
	a.accepted = now
	maps.DeleteFunc(a.away, func(key string, _ *life) bool { return now[key] == nil || a.jobs[key] != nil })
	return present, revoked, over
}

// overdue returns why an acceptance is not in force; "" = it is.
func (d *desk) overdue(c *ledger.Acceptance) string {
	if !c.Until.After(d.now) {
		return "its date has passed"
	}
	now := ""
	if j := d.jobs[c.Key]; j != nil {
		now = d.engineEpoch(j)
	} else if l := d.away[c.Key]; l != nil && l.calls != nil {
		now = d.epochOf(l, nil)
	}
	if now != "" && c.EngineEpoch != "" && now != c.EngineEpoch {
		return "the engine changed"
	}
	return ""
}

// acceptance returns the acceptance of an audit's violation that is in force; nil if there is none.
func (d *desk) acceptance(key string) *view.Accepted {
	c := d.accepted[key]
	if c == nil || d.overdue(c) != "" {
		return nil
	}
	return &view.Accepted{Operator: c.Operator, At: c.At, Until: c.Until, Reason: c.Reason}
}

// alertViolation sends the alert of a violation, unless it is accepted.
func (d *desk) alertViolation(j *job, f alert.Finding) {
	if f.Change == nil {
		f.Change = d.engineChange(j)
	}
	if accepted := d.acceptance(j.Key); accepted != nil {
		d.log(zap.InfoLevel, "an accepted violation was found again: no alert is sent", zap.String("audit", f.ID), zap.Float64("epsilon_lower", f.Lower), zap.Time("until", accepted.Until))
		return
	}
	d.alert(f)
}

// endAcceptance logs the end of an acceptance and sends the alert of its violation, if there still is one.
func (a *Auditor) endAcceptance(c *ledger.Acceptance, why string) {
	a.mu.Lock()
	f, open := a.acceptedFinding(c)
	a.mu.Unlock()
	a.opt.Logger.Warn("the acceptance of a violation has ended", zap.String("audit", shortID(c.Key)), zap.String("db.query.summary", c.Summary),
		zap.String("reason", why), zap.String("operator", c.Operator), zap.Bool("violation", open))
	if open && a.opt.OnFinding != nil {
		f.Reason = "its acceptance has ended: " + why
		a.opt.OnFinding(f)
	}
}

// acceptedFinding returns the finding of an accepted violation: of its audit if that shows it, otherwise as the
// ledger has it. It returns false if there is no violation any more.
func (d *desk) acceptedFinding(c *ledger.Acceptance) (f alert.Finding, open bool) {
	j := d.jobs[c.Key]
	if j != nil {
		if i := evidence.Worst(j.reports); j.reports[i].Verdict == analysis.Violation && i < len(j.worlds) {
			return d.finding(j, i, j.reports[i]), true
		}
		if !j.Open {
			return f, false
		}
	}
	f = alert.Finding{
		Group: c.Fingerprint, Summary: c.Summary, Source: c.Source, Confidence: d.opt.Analysis.Confidence,
		TrialsD0: int(c.Trials), TrialsD1: int(c.Trials), Odds: math.NaN(),
	}
	if j != nil {
		f.User, f.Database, f.Route = j.query.User, j.query.Database, j.Owner.Route
	}
	if c.Epsilon != nil && c.Delta != nil {
		f.Epsilon, f.Delta = *c.Epsilon, *c.Delta
	}
	s := view.Standing{Claimed: analysis.Float(f.Epsilon), Lower: analysis.Float(math.NaN()), Estimate: analysis.Float(math.NaN()), Trials: int(c.Trials)}
	if c.Lower != nil {
		s.Lower = analysis.Float(*c.Lower)
	}
	if len(c.Violation) > 0 {
		_ = json.Unmarshal(c.Violation, &s) // this process or an earlier one wrote it
	}
	Describe(&f, shortID(c.Key), &s)
	return f, c.Open
}

// acceptances adds to a status which violations are accepted. The caller holds Auditor.mu.
func (a *Auditor) acceptances(s *view.Status) {
	for i := range s.Audits {
		if e := &s.Audits[i]; e.Status() == finding.Open {
			e.Accepted = a.acceptance(e.Key)
		}
	}
	for i := range s.Records {
		s.Records[i].Accepted = a.acceptance(a.records.order[i].seat.Key)
	}
	for key := range a.accepted {
		if c := a.acceptance(key); c != nil {
			if s.Accepted == nil {
				s.Accepted = map[string]view.Accepted{}
			}
			s.Accepted[shortID(key)] = *c
		}
	}
}

// acceptedViolations returns how many of the violations in memory are accepted.
func (d *desk) acceptedViolations() (n int) {
	for key := range d.accepted {
		j := d.jobs[key]
		if (d.records.byKey[key] != nil || j != nil && j.violates()) && d.acceptance(key) != nil {
			n++
		}
	}
	return n
}
