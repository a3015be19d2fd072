package schedule

import (
	"cmp"
	"slices"
	"time"
)

// Refusal is the reason why an audit is not admitted; "" = it is admitted.
type Refusal string

// Reasons why an audit is not admitted, fit for a metric label.
const (
	// TooManyAudits: all places are taken, and no audit may be evicted for this one.
	TooManyAudits Refusal = "too_many_audits"
	// ShapeSampled: the same query with other constants, and the same claim, has the maximal number of audits.
	ShapeSampled Refusal = "shape_sampled"
)

// Refusals returns every Refusal.
func Refusals() []Refusal { return []Refusal{TooManyAudits, ShapeSampled} }

// Admit adds an audit, or returns the reason against it. It removes the audit that Room returned.
func (r *Roster) Admit(a *Audit, now time.Time) (evicted *Audit, refusal Refusal) {
	if evicted, refusal = r.Room(a); refusal != "" {
		return nil, refusal
	}
	if evicted != nil {
		r.Remove(evicted)
	}
	r.add(a, now)
	return evicted, ""
}

// Room reports whether there is a place for an audit, and returns the audit that would be evicted for it, if any. By
// these rules a client that floods the auditor with queries displaces only its own:
//
//   - An owner has at most PerShape audits of one shape and promise. A further one replaces a decided audit of these, or
//     one that has not begun and whose query was run less often.
//   - When all places are taken, an owner with fewer audits displaces one of the owner with the most.
//   - For one owner, decided audits are evicted first; then one of the shape with the most audits, if the shape of the new
//     one has at least two fewer; then those that have not begun and whose query was run less often.
//   - If nothing else is possible, an audit of the owner that has begun gives its place to one that has not, if the ledger keeps its
//     evidence, and goes on when its query has a place again: see makeWay. So every query has its first trials soon.
//   - An audit with a worker and a violation are never evicted.
func (r *Roster) Room(a *Audit) (evicted *Audit, refusal Refusal) {
	s := r.shapes[shapeKey{a.Owner, a.Shape}]
	same, places := s.of(a.Promise)
	switch {
	case a.Extra:
	case places >= r.limits.PerShape:
		if evicted = leastPromising(same, func(b *Audit) bool { return b.gives(a) }); evicted == nil {
			return nil, ShapeSampled
		}
	case len(r.list)-r.extra >= r.limits.Audits:
		if evicted = r.makeRoom(a, s); evicted == nil {
			evicted = r.makeWay(a)
		}
		if evicted == nil {
			return nil, TooManyAudits
		}
	}
	return evicted, ""
}

// gives reports whether an audit may be evicted for another one of its owner.
func (a *Audit) gives(way *Audit) bool {
	return a.phase == Decided || a.phase == Queued && !a.Open && a.Trials == 0 && a.Seen < way.Seen && !way.Tried
}

// makeRoom returns the audit to evict when all places are taken, or nil.
func (r *Roster) makeRoom(a *Audit, own *shape) *Audit {
	audits, crowd, account := 0, 0, r.owners[a.Owner]
	if account != nil {
		audits = account.audits
	}
	if own != nil {
		crowd = len(own.audits)
	}
	var best *Audit
	for _, b := range r.list {
		switch {
		case b.phase == Running || b.phase == Violation || b.phase == Watching || b.Open || b.Extra:
			continue
		case b.account != account:
			if b.account.audits <= audits+1 {
				continue
			}
		case len(b.shape.audits) <= crowd+1 && b.phase != Decided && (len(b.shape.audits) <= crowd || !b.gives(a)):
			continue
		}
		if best == nil || byPlaces(b, best) < 0 {
			best = b
		}
	}
	return best
}

// suspicious is the share of the threshold beyond which an audit gives its place to a new one only after all others.
const suspicious = .25

// makeWay returns an audit that has begun, of the owner of a new one, to evict for it, or nil. Its evidence is kept;
// one whose violation is being confirmed is not evicted. A new audit may be one that lost its place in this way: then
// its query must have been run more than twice as often, so that no two audits evict each other in turns.
func (r *Roster) makeWay(a *Audit) *Audit {
	account := r.owners[a.Owner]
	var best *Audit
	for _, b := range r.list {
		if b.phase != Queued || b.turns == 0 || !b.Kept || b.Open || b.Background || b.Extra || b.Wealth >= b.Threshold || b.account != account || a.Tried && a.Seen <= 2*b.Seen {
			continue
		}
		if best == nil || byUse(b, best) < 0 {
			best = b
		}
	}
	return best
}

// byUse orders audits whose evidence is kept by the loss of pausing them, smallest first: those without a suspicion,
// then by how often their query was run, by trials, and the latest first.
func byUse(a, b *Audit) int {
	return cmp.Or(
		boolCompare(a.Wealth > suspicious*a.Threshold, b.Wealth > suspicious*b.Threshold),
		cmp.Compare(a.Seen, b.Seen), cmp.Compare(a.Trials, b.Trials), cmp.Compare(b.number, a.number),
	)
}

// byPlaces orders audits by the number of audits of their owner, then by byPromise.
func byPlaces(a, b *Audit) int {
	if a.account != b.account && a.account.audits != b.account.audits {
		return cmp.Compare(b.account.audits, a.account.audits)
	}
	return byPromise(a, b)
}

// byPromise orders audits of one owner by the loss of evicting them, smallest first: decided ones by when their query
// was last run, then those of shapes with the most audits, then by wealth, by how often their query was run, by trials,
// and the latest first.
func byPromise(a, b *Audit) int {
	if a.phase == Decided || b.phase == Decided {
		if a.phase != b.phase {
			return -boolCompare(a.phase == Decided, b.phase == Decided)
		}
		return cmp.Or(a.LastSeen.Compare(b.LastSeen), cmp.Compare(a.number, b.number))
	}
	return cmp.Or(
		cmp.Compare(len(b.shape.audits), len(a.shape.audits)), cmp.Compare(a.Wealth, b.Wealth),
		cmp.Compare(a.Seen, b.Seen), cmp.Compare(a.Trials, b.Trials), cmp.Compare(b.number, a.number),
	)
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// leastPromising returns the first audit by byPromise that may be evicted, or nil.
func leastPromising(audits []*Audit, may func(*Audit) bool) *Audit {
	var best *Audit
	for _, a := range audits {
		if may(a) && (best == nil || byPromise(a, best) < 0) {
			best = a
		}
	}
	return best
}

// Retire returns a violation to be replaced by a shorter record, and removes it, if violations occupy more than half of
// the places: the one whose query was run longest ago, of the shape with the most audits, of the owner with the most.
// It keeps its place within its shape until Reopen, so that one broken query cannot raise an unlimited number of
// alerts. nil = there is room.
func (r *Roster) Retire() *Audit {
	if r.violations <= max(1, r.limits.Audits/2) {
		return nil
	}
	var all []*Audit
	for _, a := range r.list {
		if a.phase == Violation && !a.busy {
			all = append(all, a)
		}
	}
	if len(all) == 0 { // all are being measured
		return nil
	}
	gone := slices.MinFunc(all, func(a, b *Audit) int {
		return cmp.Or(
			cmp.Compare(b.account.audits, a.account.audits), cmp.Compare(len(b.shape.audits), len(a.shape.audits)),
			a.LastSeen.Compare(b.LastSeen), cmp.Compare(a.number, b.number),
		)
	})
	gone.shape.closed[gone.Promise]++
	r.Remove(gone)
	return gone
}

// Reopen reports that the record of a retired violation was dropped.
func (r *Roster) Reopen(a *Audit) {
	if a.shape.closed[a.Promise]--; a.shape.closed[a.Promise] == 0 {
		delete(a.shape.closed, a.Promise)
	}
	r.drop(a.shape)
}

func (a *Audit) mayShed() bool { return !a.Open && (a.phase == Queued || a.phase == Decided) }

// Shed returns an audit to evict because the audits exceed the memory budget, and removes it; nil = they do not, or no
// audit may be evicted. It belongs to the owner with the most memory: the largest without growing evidence, then the
// largest.
func (r *Roster) Shed() *Audit {
	if r.limits.Bytes == 0 || r.bytes <= r.limits.Bytes {
		return nil
	}
	sums := map[Owner]int64{}
	for _, a := range r.list {
		if a.mayShed() {
			sums[a.Owner] += a.Bytes
		}
	}
	var best *Audit
	for _, a := range r.list {
		if !a.mayShed() {
			continue
		}
		if best == nil || cmp.Or(
			cmp.Compare(sums[best.Owner], sums[a.Owner]), boolCompare(a.Wealth > 0, best.Wealth > 0),
			cmp.Compare(best.Bytes, a.Bytes), cmp.Compare(best.number, a.number),
		) < 0 {
			best = a
		}
	}
	if best != nil {
		r.Remove(best)
	}
	return best
}
