package desk

import (
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Restoration takes back audits of earlier processes.
type Restoration struct {
	*core
	places     *places
	beginnings *Beginnings
}

// Stored is an audit of an earlier process, with its query and the row of the ledger.
type Stored struct {
	Key, Route string
	Query      capture.Query
	Plan       *rewrite.Plan
	Edition    uint64 // of the catalogs with which the plan was made
	Row        *ledger.Audit
}

// Before reports whether an audit was restored before the ledger was lost again. Another process may have gone on with
// it since: its next turn reads its evidence again.
func (r *Restoration) Before(key string) bool {
	j := r.job(key)
	if j != nil && j.Phase() == schedule.Queued {
		j.recalled, j.worlds, j.reported, j.evidence = false, nil, nil, nil
	}
	return j != nil
}

// Enter adds a stored audit if there is a place. The error says why its progress cannot be used.
func (r *Restoration) Enter(s *Stored) (placed bool, fault error) {
	row, q := s.Row, s.Query
	j := &job{
		Audit: schedule.NewAudit(s.Key, s.Plan.Shape, schedule.Owner{User: q.User, Database: q.Database, Route: s.Route}),
		plan:  s.Plan, edition: s.Edition, query: q, answers: row.Query.Destinations, firstSeen: row.Query.FirstSeen, recalled: true, processes: row.Processes,
	}
	j.Seen, j.LastSeen, j.Promise = row.Executions, row.Query.LastSeen, recognize.PromiseOf(s.Plan)
	j.recallLife(row)
	if evicted, refusal := r.roster.Room(&j.Audit); refusal != "" || evicted != nil {
		return false, nil
	}
	r.places.enter(j)
	if row.Progress != nil {
		fault = r.beginnings.resume(j, row)
		r.places.shed()
	}
	return true, fault
}

// Ended ends the restoration of all audits.
func (r *Restoration) Ended() { r.places.retire() }
