package replay

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5/pgconn"
)

// planning says whether a plan of a statement may be kept for many trials.
type planning uint8

const (
	unknownPlanning planning = iota
	// steadyPlanning: planning the statement again gives the same plan, so that keeping one changes no trial's law.
	steadyPlanning
	// freshPlanning: every trial is parsed and planned anew.
	freshPlanning
)

// planLooks is how often a statement is planned to see whether planning is steady. A function that is declared
// IMMUTABLE and draws noise is called by the planner, and its result becomes a constant of the plan: a kept plan would
// give one draw again and again. A draw of two equally likely values agrees with itself so often once in 128 times.
const planLooks = 8

// askPlanning plans the statement on D0 several times. A statement that cannot be planned is planned anew by every
// trial, and what comes of it is the outcome.
func (r *Run) askPlanning(ctx context.Context, conn *pgconn.PgConn) (planning, error) {
	var first []byte
	for i := range planLooks {
		result := conn.ExecParams(ctx, "EXPLAIN (VERBOSE) "+r.stmt.Worlds[0], r.values, r.oids, r.format, nil).Read()
		if result.Err != nil {
			if _, fault := classify(result.Err); fault != nil {
				return unknownPlanning, fault
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
