package schedule

import (
	"slices"
	"time"
)

// Queue is a copy of the audits that wait for a turn outside the watch share, and of what decides their order. It can
// be sorted while the Roster changes.
type Queue struct{ first, other []Audit }

// Queue returns the present Queue.
func (r *Roster) Queue(now time.Time) Queue {
	s, accounts := r.survey(now), map[*account]*account{}
	return Queue{copies(s.first, accounts), copies(s.other, accounts)}
}

// copies returns copies of audits, of their shapes, and of their accounts, of which each has one copy.
func copies(audits []*Audit, accounts map[*account]*account) []Audit {
	all, shapes := make([]Audit, len(audits)), make([]shape, len(audits))
	for i, a := range audits {
		own := accounts[a.account]
		if own == nil {
			own = new(account)
			*own = *a.account
			accounts[a.account] = own
		}
		shapes[i].begun = a.shape.begun
		all[i] = *a
		all[i].shape, all[i].account = &shapes[i], own
	}
	return all
}

// Keys returns the keys of the audits in the order in which they would have their turns if nothing changed. Next
// differs in that users, and first and other turns, alternate.
func (q Queue) Keys() []string {
	return append(sorted(q.first, byFirstTurn), sorted(q.other, byTurn)...)
}

func sorted(audits []Audit, by func(a, b *Audit) int) []string {
	all, keys := make([]*Audit, len(audits)), make([]string, len(audits))
	for i := range audits {
		all[i] = &audits[i]
	}
	slices.SortFunc(all, by)
	for i, a := range all {
		keys[i] = a.Key
	}
	return keys
}

// Waiting returns the number of audits that wait for a turn outside the watch share and may have it now.
func (r *Roster) Waiting(now time.Time) int { return r.survey(now).due() }
