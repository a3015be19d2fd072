package desk

import (
	"encoding/json"
	"maps"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Acceptances are the violations that operators accept: they send no alerts.
type Acceptances struct {
	*core
	versions *versions
	accepted map[string]*ledger.Acceptance // in the ledger, by key of the audit
	away     map[string]*life              // of accepted violations whose audits are not in memory, by key
}

// Known reports whether it is known what the query of an accepted violation calls.
func (a *Acceptances) Known(key string) bool { return a.jobs[key] != nil || a.away[key] != nil }

// SetAway notes the plan of the query of an accepted violation whose audit is not in memory; nil if it cannot be known.
func (a *Acceptances) SetAway(key string, plan *rewrite.Plan) {
	l := &life{}
	if plan != nil {
		a.versions.callsOf(l, plan)
	}
	a.away[key] = l
}

// Adopt replaces the acceptances by those that the ledger has now. It returns the new ones, those that are there no
// more, and those that are no longer in force.
func (a *Acceptances) Adopt(all []ledger.Acceptance) (present, revoked []*ledger.Acceptance, over []EndedAcceptance) {
	now := make(map[string]*ledger.Acceptance, len(all))
	for i := range all {
		c := &all[i]
		now[c.Key] = c
		if why := a.overdue(c); why != "" {
			over = append(over, EndedAcceptance{c, why})
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

// Remove notes that the ledger has an acceptance no more.
func (a *Acceptances) Remove(key string) { delete(a.accepted, key) }

// Finding returns the finding of a violation whose acceptance has ended: of its audit if that shows it, otherwise as
// the ledger has it. It returns false if there is no violation any more.
func (a *Acceptances) Finding(c *ledger.Acceptance) (f alert.Finding, open bool) {
	j := a.jobs[c.Key]
	if j != nil {
		if i := evidence.Worst(j.reports); j.reports[i].Verdict == analysis.Violation && i < len(j.worlds) {
			return a.finding(j, i, j.reports[i]), true
		}
		if !j.Open {
			return f, false
		}
	}
	f = alert.Finding{
		Group: c.Fingerprint, Summary: c.Summary, Source: c.Source, Confidence: a.opt.Analysis.Confidence,
		TrialsD0: int(c.Trials), TrialsD1: int(c.Trials), Odds: math.NaN(),
	}
	if j != nil {
		f.User, f.Database, f.Route = j.query.User, j.query.Database, j.Owner.Route
	}
	if c.Epsilon != nil && c.Delta != nil {
		f.Epsilon, f.Delta, f.Curve = *c.Epsilon, *c.Delta, c.Curve
	}
	s := view.Standing{Claimed: analysis.Float(f.Epsilon), Delta: f.Delta, Curve: f.Curve, Lower: analysis.Float(math.NaN()), Estimate: analysis.Float(math.NaN()), Trials: int(c.Trials)}
	if c.Lower != nil {
		s.Lower = analysis.Float(*c.Lower)
	}
	if len(c.Violation) > 0 {
		_ = json.Unmarshal(c.Violation, &s) // this process or an earlier one wrote it
	}
	Describe(&f, ShortID(c.Key), &s)
	return f, c.Open
}

// EndedAcceptance is an acceptance that is no longer in force, and why.
type EndedAcceptance struct {
	*ledger.Acceptance
	Why string
}

// overdue returns why an acceptance is not in force; "" = it is.
func (a *Acceptances) overdue(c *ledger.Acceptance) string {
	if !c.Until.After(a.now) {
		return "its date has passed"
	}
	now := ""
	if j := a.jobs[c.Key]; j != nil {
		now = a.versions.engineVersion(j)
	} else if l := a.away[c.Key]; l != nil && l.calls != nil {
		now = a.versions.versionOf(l, nil)
	}
	if now != "" && c.EngineEpoch != "" && now != c.EngineEpoch {
		return "the engine changed"
	}
	return ""
}

// acceptance returns the acceptance of an audit's violation that is in force; nil if there is none.
func (a *Acceptances) acceptance(key string) *view.Accepted {
	c := a.accepted[key]
	if c == nil || a.overdue(c) != "" {
		return nil
	}
	return &view.Accepted{Operator: c.Operator, At: c.At, Until: c.Until, Reason: c.Reason}
}
