package replay

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// SQLSTATE words of dpwatch's own, for outcomes that the server has no code for.
const (
	Timeout  = "timeout"   // statement_timeout or lock_timeout passed
	TooLarge = "too_large" // more rows or bytes than allowed
)

// SetupError says that the shadow database is not what the query needs: rights, schemas, functions.
// Trying again does not help; somebody has to act. The server's message may quote rows: withheld.Reveal shows it.
type SetupError struct {
	Op   string
	Hint string // what to do
	err  error
}

// Error returns what was tried, the server's SQLSTATE, and what to do.
func (e *SetupError) Error() string { return e.text(error.Error) }

// Reveal returns what was tried, what the server said, and what to do.
func (e *SetupError) Reveal() string { return e.text(withheld.Reveal) }

func (e *SetupError) text(say func(error) string) string {
	text := e.Op
	if e.err != nil {
		text += ": " + say(sqlstate.Withhold(e.err))
	}
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
}

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.err }

type transientError struct {
	op  string
	err error
}

func (e *transientError) Error() string  { return e.op + ": " + sqlstate.Withhold(e.err).Error() }
func (e *transientError) Reveal() string { return e.op + ": " + withheld.Reveal(e.err) }
func (e *transientError) Unwrap() error  { return e.err }

// Transient reports whether err may go away by itself: the database is down, restarting or full.
func Transient(err error) bool {
	var t *transientError
	return errors.As(err, &t)
}

// classify turns a trial's error into an outcome's SQLSTATE, or into a fault of the set-up or of the connection.
func classify(err error) (state string, fault error) {
	var long *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &long) {
		return TooLarge, nil // the session is of no more use
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return "", &transientError{op: "replay", err: err}
	}
	switch pg.Code {
	case "57014", "55P03":
		return Timeout, nil
	case "53400": // temp_file_limit, as the operator has set it
		return pg.Code, nil
	case "42501":
		return "", &SetupError{Op: "replay", Hint: "grant the replay role USAGE on the neighbour schemas, SELECT on their tables and EXECUTE on the functions", err: err}
	case "42P01", "3F000":
		return "", &SetupError{Op: "replay", Hint: "the shadow database lacks a table that the query reads: create the copies again if it is protected; a table of privacy.public must exist in the shadow database under its own name (`dpwatch config check --connect` names it)", err: err}
	case "42883":
		return "", &SetupError{Op: "replay", Hint: "the shadow database lacks a function that the query calls: install the engine's functions there, on shadow.search_path", err: err}
	case "0A000":
		if pg.Routine == "RevalidateCachedQuery" { // the copies were made again under a kept plan
			return "", &transientError{op: "replay", err: err}
		}
	case "25006":
		return "", &SetupError{Op: "replay", Hint: "the query writes; it cannot be replayed", err: err}
	}
	if strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "58") {
		return "", &transientError{op: "replay", err: err}
	}
	return sqlstate.Code(pg.Code), nil
}

// version is a SetupError where every trial of every world failed with one error of a statement that does not fit its tables
// (class 42: a column that is missing, a type that has changed, say): production answered the statement, so that the
// copies are of another version of the tables. An error in some worlds alone is an outcome.
func (r *Run) version(rounds []Round) error {
	if len(rounds) == 0 {
		return nil
	}
	state := rounds[0][0].SQLState
	if !strings.HasPrefix(state, "42") {
		return nil
	}
	for _, round := range rounds {
		for _, o := range round {
			if o.SQLState != state {
				return nil
			}
		}
	}
	return &SetupError{
		Op:   fmt.Sprintf("replay: every trial in every world fails with SQLSTATE %s", state),
		Hint: "the copies are of another version of the tables than the query: run `dpwatch neighbours refresh`, or create the copies again",
	}
}

func settingError(name string, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return &transientError{op: "set " + name, err: err}
	}
	return &SetupError{Op: "set " + name, Hint: "the replay role may not use this setting of the client's session", err: err}
}
