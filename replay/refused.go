package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// This file tells a set-up that lacks names (tables, functions, privileges, columns) from a statement that fails so in a
// part of its trials: the latter is an outcome, which may show the data.

// serverError returns the error that a server sent, nil for another.
func serverError(err error) *pgconn.PgError {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return nil
	}
	return pg
}

// refusedNames are the SQLSTATEs of names that cannot be used: the answer to a missing table, schema or function, or a
// missing privilege.
var refusedNames = []string{"42P01", "3F000", "42883", "42501"}

// refusedName returns the SQLSTATE of an error that is about a name, "" for another error.
func refusedName(err error) string {
	if pg := serverError(err); pg != nil && slices.Contains(refusedNames, pg.Code) {
		return pg.Code
	}
	return ""
}

// refusedTrials is how often in a row a statement must fail on a world before the set-up is to blame: one that fails in
// nine trials of ten does so with a probability of .0012.
const refusedTrials = 64

// confirmRefusals returns a SetupError if names are missing in the set-up: a statement whose trials fail for a name cannot
// be planned any more, or all trials of a batch on a world fail with one error of class 42 and go on to fail when they are
// repeated. Repeated trials are no evidence.
func (r *Run) confirmRefusals(ctx context.Context, rounds []Round) error {
	if len(rounds) == 0 || len(r.exec.player.engines) > 0 {
		return nil
	}
	all, refused := true, false
	for world := range rounds[0] {
		state, constant, name := r.refusals(rounds, world)
		all = all && constant && state == rounds[0][0].SQLState
		refused = refused || name
	}
	if !all && !refused {
		return nil
	}
	s, err := r.exec.session(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	for world := range rounds[0] {
		_, constant, name := r.refusals(rounds, world)
		if !name && !all {
			continue
		}
		if name && s.conn != nil {
			if err := r.exec.planned(ctx, s, world); err != nil {
				return err
			}
		}
		if constant {
			if err := r.repeat(ctx, s, world, rounds[0][world]); err != nil {
				return err
			}
		}
		if all {
			return nil // the others fail alike, and this one does not always
		}
	}
	return nil
}

// refusals returns the SQLSTATE of the first trial on a world, whether all of its trials have it and it is of class 42 or
// about a name, and whether any of them failed for a name.
func (r *Run) refusals(rounds []Round, world int) (state string, constant, name bool) {
	state = rounds[0][world].SQLState
	constant = strings.HasPrefix(state, "42") || slices.Contains(refusedNames, state)
	for _, round := range rounds {
		constant = constant && round[world].SQLState == state
		name = name || slices.Contains(refusedNames, round[world].SQLState)
	}
	return state, constant, name
}

// planned returns a SetupError if a statement cannot be planned on a world.
func (x *executor) planned(ctx context.Context, s *session, world int) error {
	result := s.conn.ExecParams(ctx, "EXPLAIN "+x.stmt.Worlds[world], x.values, x.oids, x.format, nil).Read()
	if result.Err == nil {
		return nil
	}
	_, fault := x.player.classify(result.Err)
	return fault
}

// repeat returns a SetupError if a statement goes on to fail on a world as it did.
func (r *Run) repeat(ctx context.Context, s *session, world int, first outcome.Outcome) error {
	for range refusedTrials {
		var o outcome.Outcome
		if err := r.exec.pipeline(ctx, s, []trial{{world: world, into: &o}}); err != nil {
			return err
		}
		if o.SQLState != first.SQLState {
			return nil
		}
	}
	if slices.Contains(refusedNames, first.SQLState) {
		message, _, _ := strings.Cut(first.Message, "\n")
		_, fault := r.exec.player.classify(&pgconn.PgError{Code: first.SQLState, Message: message})
		return fault
	}
	return &SetupError{
		Op:   fmt.Sprintf("replay: every trial in every world fails with SQLSTATE %s", first.SQLState),
		Hint: "the definitions of the copied tables probably differ from those in production: run `dpwatch neighbours create --replace`, or create the copies again",
	}
}
