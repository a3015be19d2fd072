package evidence

import (
	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// observed is what is kept of all trials, besides what audits keep.
type observed struct {
	drifts   []analysis.Drift // of D0 and of each neighbour; nil = the order of the outcomes has no meaning
	trials   int
	failure  string // the common SQLSTATE of all trials, or ""
	recorded bool

	readsKnown bool   // see SetReads
	unverified string // see SetReads
	beside     string // see SetReads
	unlike     string // see SetUnlike
}

// Executions returns the number of trials, on all worlds.
func (s *observed) Executions() int { return s.trials }

func (s *observed) count(world int, o outcome.Outcome) {
	if s.drifts != nil {
		s.drifts[world].Add(o)
	}
	if s.trials++; s.trials == 1 {
		s.failure = o.SQLState
	} else if o.SQLState != s.failure {
		s.failure = ""
	}
}
