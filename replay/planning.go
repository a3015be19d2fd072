package replay

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// planning is the answer to the question whether a plan of a statement may be reused for many trials.
type planning uint32

const (
	unknownPlanning planning = iota
	// steadyPlanning: planning the statement again gives the same plan, so reusing one does not change the distribution
	// of a trial.
	steadyPlanning
	// freshPlanning: every trial is parsed and planned again.
	freshPlanning
)

// sharedPlanning is the planning of a Run, which sessions that are opened at the same time read and set.
type sharedPlanning struct{ value atomic.Uint32 }

func newPlanning(p planning) *sharedPlanning {
	shared := &sharedPlanning{}
	shared.set(p)
	return shared
}

func (s *sharedPlanning) get() planning  { return planning(s.value.Load()) }
func (s *sharedPlanning) set(p planning) { s.value.Store(uint32(p)) }

// planChecks is how often a statement is planned to check whether its plan may be reused. The planner evaluates a
// function that is declared IMMUTABLE even if it draws noise, and its result becomes a constant of the plan: a reused
// plan would repeat one random value. A random choice between two equally likely values is the same in all 8 plans with
// probability 1/128.
const planChecks = 8

// checkPlanning plans the statement on D0 several times and returns steadyPlanning if all plans are equal. It returns
// freshPlanning for a statement that cannot be planned: each trial then has the error as its outcome.
func (x *executor) checkPlanning(ctx context.Context, conn *pgconn.PgConn) (planning, error) {
	var first []byte
	for i := range planChecks {
		result := conn.ExecParams(ctx, "EXPLAIN (VERBOSE) "+x.stmt.Worlds[0], x.values, x.oids, x.format, nil).Read()
		if result.Err != nil {
			if _, err := x.classify(conn, 0, result.Err); err != nil {
				return unknownPlanning, err
			}
			return freshPlanning, nil
		}
		var plan []byte
		for _, row := range result.Rows {
			plan = append(append(plan, bytes.Join(row, nil)...), '\n')
		}
		switch {
		case i == 0:
			first = plan
		case !bytes.Equal(plan, first):
			return freshPlanning, nil
		}
	}
	return steadyPlanning, nil
}
