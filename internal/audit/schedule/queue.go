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

// copies returns copies of audits, and of their accounts, of which each has one copy.
func copies(lines []*line, accounts map[*account]*account) []Audit {
	all, own := make([]Audit, len(lines)), make([]line, len(lines))
	for i, l := range lines {
		account := accounts[l.account]
		if account == nil {
			account = new(*l.account)
			accounts[l.account] = account
		}
		all[i], own[i] = *l.audit, *l
		all[i].line, all[i].shape, own[i].audit, own[i].account = &own[i], nil, &all[i], account
	}
	return all
}

// Keys returns the keys of the audits in the order in which they would have their turns if nothing changed. Next
// differs in that users, and first and other turns, alternate.
func (q Queue) Keys() []string {
	return append(sorted(q.first, byFirstTurn), sorted(q.other, byTurn)...)
}

func sorted(audits []Audit, by func(a, b *line) int) []string {
	all, keys := make([]*line, len(audits)), make([]string, len(audits))
	for i := range audits {
		all[i] = audits[i].line
	}
	slices.SortFunc(all, by)
	for i, l := range all {
		keys[i] = l.audit.Key
	}
	return keys
}

// Waiting returns the number of audits that wait for a turn outside the watch share and may have it now.
func (r *Roster) Waiting(now time.Time) int { return r.survey(now).due() }
