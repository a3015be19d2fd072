package desk

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Controls are the control audits. A control audit is one of the same query as another audit, the one that it belongs
// to, with the twin of D0 in the place of D1: whatever it finds is a false alarm. It has an extra place, and turns like
// other audits, in the watch share, is in jobs but not in order, and leaves when it is decided. Only its result stays.
type Controls struct {
	*core
	places *places
	store  *store

	known   map[string]bool           // keys of control audits that have begun, here or in an earlier process
	results map[draw]analysis.Verdict // of those that are decided
	counts  map[analysis.Verdict]int  // of results
	claimed int                       // audits with a claim that have had a place
}

// draw is a control audit on one version of the copies, on which it counts once.
type draw struct{ key, copies string }

// Recall takes the control audits that the ledger has.
func (c *Controls) Recall(all []ledger.ControlAudit) {
	for _, a := range all {
		c.known[a.Key] = true
		if a.Verdict != "" {
			c.result(draw{a.Key, a.DataEpoch}, analysis.Verdict(a.Verdict))
		}
	}
}

// result notes a result, and reports whether it counts: the first one of a draw does.
func (c *Controls) result(d draw, verdict analysis.Verdict) bool {
	if c.results[d] != "" {
		return false
	}
	c.results[d] = verdict
	c.counts[verdict]++
	return true
}

// off returns why there are no control audits; "" = there are.
func (c *Controls) off() string {
	switch {
	case c.opt.ControlShare <= 0:
		return "audit.control_share is 0"
	case c.opt.WatchShare <= 0:
		return "audit.watch_share, in which control audits have their turns, is 0"
	case c.opt.Twin == "" || c.environment.Copies != "" && !c.environment.Twin:
		return "there is no twin of D0"
	}
	return ""
}

// choose decides before the first trial of an audit whether a control audit belongs to it: by a hash of its key, which
// no result can influence and by which every process decides alike. The first audit after the expected number without
// any is chosen, too, so that a small fleet has one.
func (c *Controls) choose(j *job) {
	if j.plan.Claim == nil || c.opt.ControlShare <= 0 {
		return
	}
	c.claimed++
	key := ledger.ControlKey(j.Key)
	hash, _ := coins(key)
	j.chosen = c.known[key] || hash < c.opt.ControlShare || len(c.known) == 0 && float64(c.claimed)*c.opt.ControlShare >= 1
	if j.chosen {
		c.known[key] = true
	}
}

// coins returns a number from 0 to 1, and whether the claim is 0, by the key of a control audit.
func coins(key string) (uniform float64, zero bool) {
	sum := sha256.Sum256([]byte(key))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53), sum[8]&1 == 1
}

// follow gives an audit the control audit that belongs to it, if it was chosen and has none on the present copies. Of
// the places for audits, control audits have their share besides.
func (c *Controls) follow(j *job) {
	if !j.chosen || c.environment.Copies == "" || c.off() != "" {
		return
	}
	key := ledger.ControlKey(j.Key)
	most := max(1, int(c.opt.ControlShare*float64(c.opt.MaxAudits)))
	if c.jobs[key] != nil || c.results[draw{key, c.environment.Copies}] != "" || len(c.jobs)-len(c.order) >= most {
		return
	}
	k := &job{Audit: schedule.NewAudit(key, j.Shape+" control", j.Owner), control: true, plan: j.plan, edition: j.edition, query: j.query, firstSeen: c.now}
	k.Seen, k.LastSeen, k.Background, k.Extra, k.life.released = j.Seen, j.LastSeen, true, true, true
	c.places.enter(k)
}

// claim returns the claim of a control audit: that of the query, or one of epsilon 0 with its delta.
func (j *job) controlClaim(claim analysis.Claim) analysis.Claim {
	if _, zero := coins(j.Key); zero {
		return analysis.Claim{Delta: claim.Delta}
	}
	return claim
}

// decide ends a control audit, and counts its result.
func (c *Controls) decide(j *job, verdict analysis.Verdict, progress *saved.Progress) {
	c.store.put(j, progress)
	if c.result(draw{j.Key, j.copies}, verdict) && verdict == analysis.Violation {
		r := j.worst()
		c.log(zap.WarnLevel, "a false alarm on identical data: a control audit, of D0 against its twin, ended with a violation. It is none of the query, and counts in the rate of false alarms",
			zap.String("audit", j.id), zap.String("db.query.summary", j.plan.Summary), zap.Float64("epsilon_claimed", float64(r.Claimed.Epsilon)),
			zap.Int("trials", r.Trials.D0), zap.Int("false_alarms", c.counts[analysis.Violation]), zap.Int("control_audits", c.counts[analysis.Violation]+c.counts[analysis.NoEvidence]))
	}
	c.drop(j)
}

// drop removes a control audit.
func (c *Controls) drop(j *job) {
	c.roster.Remove(&j.Audit)
	delete(c.jobs, j.Key)
}

// FalseAlarms returns the rate of false alarms on identical data.
func (c *Controls) FalseAlarms() view.FalseAlarms {
	return view.FalseAlarms{
		FalseAlarms: read.NewFalseAlarms(c.counts[analysis.Violation], c.counts[analysis.NoEvidence], c.counts[analysis.Inconclusive]),
		Running:     len(c.jobs) - len(c.order), ErrorRate: math.Round((1-c.opt.Analysis.Confidence)*1e12) / 1e12, Guard: c.environment.Guard, Off: c.off(),
	}
}

// Uncontrolled ends a control audit in its turn if there is no twin in an environment, and reports whether it did.
func (b *Beginnings) Uncontrolled(key string, twin bool) bool {
	j := b.job(key)
	if !j.control || twin {
		return false
	}
	b.controls.drop(j)
	return true
}

// recallControl gives a control audit in its turn what the ledger has of it, unless that is of other copies, and reports
// whether it is decided.
func (b *Beginnings) recallControl(j *job, row *ledger.Audit, copies string) (decided bool, fault error) {
	switch {
	case row.DataEpoch != copies:
		return false, nil
	case row.Verdict != "":
		b.controls.result(draw{j.Key, copies}, analysis.Verdict(row.Verdict))
		b.controls.drop(j)
		return true, nil
	}
	if j.processes = row.Processes; row.Progress == nil {
		return false, nil
	}
	return false, b.resume(j, row)
}
