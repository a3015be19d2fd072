package desk

import "github.com/dpwatch/dpwatch/internal/audit/schedule"

// Requests are those of operators for new audits.
type Requests struct {
	*core
	places *places
}

// Noted notes that the ledger has the beginning of a requested audit.
func (r *Requests) Noted(key string) {
	if j := r.job(key); j != nil {
		j.requested = nil
	}
}

// Begin begins a decided audit again, and returns whether the ledger has the beginning: until then a process that
// ends leaves the wish to the next one. It does nothing if the audit is not in memory or has a turn.
func (r *Requests) Begin(key string) bool {
	j := r.job(key)
	if j == nil || j.Busy() {
		return false
	}
	phase := j.Phase()
	decided := phase == schedule.Decided || phase == schedule.Violation || phase == schedule.Watching
	if j.requested != nil {
		return decided || j.processes > *j.requested // decided without evidence: the query cannot be replayed any more
	}
	if decided {
		begun := j.processes
		r.places.ended.Put(key, ended{})
		j.requested = &begun
		j.repeats++
		j.previous = j.worst().Verdict
		j.life.released = true
		r.places.again(j, j.query, j.plan, j.edition)
	}
	return j.requested == nil
}
