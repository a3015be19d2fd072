package schedule

import (
	"cmp"
	"math"
	"time"
)

// How turns are shared between first ones, which are short, and others: the maximal number of first turns of an owner
// since its last other turn, while other turns wait.
const (
	maxFresh   = 8 // of shapes without an audit that has begun
	maxFurther = 2 // of further audits of a shape
	// First turns of all owners between two other turns, while other turns wait: so first turns leave a part of the
	// time to them, however many owners there are.
	maxFirst = 16
	// Of an owner's turns that are not first ones, one in oldestEvery goes to the audit that has waited longest.
	oldestEvery = 3
)

// Next returns the audit that has the next turn, or nil and how long to wait until one is due. The audit is Running
// until Return or Decide. The order is:
//
//   - First turns of shapes without an audit that has begun, then first turns of further audits, within the bounds above,
//     then all others: so a new query waits only for turns in progress.
//   - Between owners, for first turns the one with the fewest audits that wait for theirs; then the one that has used the
//     least time in turns.
//   - For one owner, the audit whose evidence reaches its threshold soonest at the rate so far; one time in three the one
//     that has waited longest. Violations that are measured come after the others, except for this third.
//   - Turns of the watch share come before those that are not first ones, but only while the share is not used; see Watch.
//
// A violation that is measured stays one: its turn ends with Return.
func (r *Roster) Next(now time.Time) (*Audit, time.Duration) {
	s := r.survey(now)
	watch, wait := r.nextWatch(s, now)
	wait = min(wait, s.wait)
	var first, other *line
	for _, a := range s.other {
		if other == nil || byTurn(a, other) < 0 {
			other = a
		}
	}
	others := other != nil || watch != nil
	for _, a := range s.first {
		if !(others && a.overdrawn()) && (first == nil || byFirstTurn(a, first) < 0) {
			first = a
		}
	}
	pick := first
	enough := r.firsts >= maxFirst && (watch != nil || other != nil)
	if enough {
		pick = nil
	}
	if pick == nil {
		pick = watch
	}
	if pick == nil {
		pick = other
	}
	if pick == nil {
		return nil, wait
	}
	next := pick.audit
	if pick != first {
		r.othersHadTurn(enough && first != nil)
	}
	switch {
	case pick == watch:
		r.watch.advance(next)
		if next.phase == Decided {
			next.phase = Watching
			return next, 0
		}
		if next.turns == 0 {
			next.shape.begin(1)
		}
	case !next.untried():
		next.account.picks++
		if next.turns == 0 {
			next.shape.begin(1)
		}
	default:
		r.firsts++
		if next.begun == 0 {
			next.account.fresh++
		} else {
			next.account.further++
		}
		next.shape.begin(1)
	}
	next.turns++
	if next.phase == Violation {
		next.busy = true
		return next, 0
	}
	next.phase = Running
	return next, 0
}

// Take gives an audit that waits the turn that a worker was given earlier; see Next.
func (r *Roster) Take(a *Audit) {
	if a.busy = a.phase == Violation; !a.busy {
		a.phase = Running
	}
}

// othersHadTurn lets first turns begin again after one of another kind. With more, owners have first turns left.
func (r *Roster) othersHadTurn(more bool) {
	r.firsts = 0
	if more {
		return
	}
	for _, o := range r.owners {
		o.fresh, o.further = 0, 0
	}
}

// overdrawn reports whether the owner of an audit without a turn has to wait for a turn of another kind.
func (a *line) overdrawn() bool {
	if a.begun == 0 {
		return a.account.fresh >= maxFresh
	}
	return a.account.further >= maxFurther
}

// byFirstTurn orders audits that have had no turn. Like the other orders, it compares no more than it needs: it is
// called for every audit.
func byFirstTurn(a, b *line) int {
	if c := cmp.Or(-boolCompare(a.Open, b.Open), boolCompare(a.begun > 0, b.begun > 0)); c != 0 {
		return c
	}
	if a.account != b.account {
		if c := cmp.Or(cmp.Compare(a.account.waiting, b.account.waiting), cmp.Compare(a.account.used, b.account.used)); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(a.begun, b.begun), cmp.Compare(b.audit.Seen, a.audit.Seen), cmp.Compare(a.audit.number, b.audit.number))
}

// byTurn orders audits that have had a turn.
func byTurn(a, b *line) int {
	if a.account != b.account {
		if c := cmp.Compare(a.account.used, b.account.used); c != 0 {
			return c
		}
		return bySince(a, b)
	}
	if a.account.picks%oldestEvery == oldestEvery-1 {
		return bySince(a, b)
	}
	if c := cmp.Or(boolCompare(a.phase == Violation, b.phase == Violation), cmp.Compare(a.audit.remaining(), b.audit.remaining())); c != 0 {
		return c
	}
	return bySince(a, b)
}

// bySince orders audits by how long they have waited, the longest first.
func bySince(a, b *line) int {
	if c := a.audit.since.Compare(b.audit.since); c != 0 {
		return c
	}
	return cmp.Compare(a.audit.number, b.audit.number)
}

// remaining returns the seconds of turns until the evidence reaches its threshold at the rate so far; infinite if it
// does not grow.
func (a *Audit) remaining() float64 {
	if !(a.Wealth > 0) || a.used <= 0 {
		return math.Inf(1)
	}
	return max(0, a.Threshold-a.Wealth) * a.used.Seconds() / a.Wealth
}

// Used returns the time of the audit's turns.
func (a *Audit) Used() time.Duration { return a.used }

// Return ends a turn of the given length. A first turn without a trial does not count.
func (r *Roster) Return(a *Audit, took time.Duration, now time.Time) {
	r.charge(a, took)
	if a.busy {
		a.busy, a.since = false, now
		return
	}
	if a.turns == 1 && a.Trials == 0 {
		a.turns = 0
		a.shape.begin(-1)
	}
	a.phase, a.since = Queued, now
}

// Decide ends the turns of an audit; the last one had the given length.
func (r *Roster) Decide(a *Audit, violation bool, took time.Duration) {
	r.charge(a, took)
	if a.phase == Violation {
		r.violations--
	}
	a.phase, a.Background = Decided, false
	if violation {
		a.phase = Violation
		r.violations++
	}
}

func (r *Roster) charge(a *Audit, took time.Duration) {
	r.watch.refund(a)
	a.used += took
	if a.Background {
		r.watch.charge(a, took)
		return
	}
	a.account.used += took
	r.watch.earn(took)
}

// Restart makes a decided audit begin again. It is then no Background audit.
func (r *Roster) Restart(a *Audit, now time.Time) {
	if a.phase == Violation {
		r.violations--
	}
	if a.turns > 0 {
		a.shape.begin(-1)
	}
	a.phase, a.turns, a.used, a.since, a.Trials, a.Wealth = Queued, 0, 0, now, 0, 0
	a.Watched, a.Background, a.Kept, a.Tried = false, false, false, false
}

// Resume gives an audit that was just admitted the turns that it had before, and their length.
func (r *Roster) Resume(a *Audit, turns int, used time.Duration) {
	if turns > 0 && a.turns == 0 {
		a.shape.begin(1)
	}
	a.turns, a.used = turns, used
}

// Due reports whether an audit waits for a turn that it may have now.
func (r *Roster) Due(now time.Time) bool {
	return r.any(func(a *line) bool { return a.waits() && !a.NotBefore.After(now) })
}

// Pressing reports whether an audit of a new shape waits for its first turn; a long turn then ends sooner.
func (r *Roster) Pressing(now time.Time) bool {
	return r.any(func(a *line) bool {
		return a.phase == Queued && !a.Background && a.untried() && a.begun == 0 && !a.NotBefore.After(now)
	})
}

func (m *members) any(is func(*line) bool) (found bool) {
	m.every(func(a *line) bool { found = is(a); return !found })
	return found
}
