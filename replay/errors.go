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

// Values of Outcome.SQLState for outcomes that have no SQLSTATE.
const (
	Timeout  = "timeout"   // statement_timeout or lock_timeout passed
	TooLarge = "too_large" // more rows or bytes than Options allow
)

// SetupError reports that the shadow database does not fit the query: privileges, schemas or functions. A retry does not
// help; an operator has to act. The server's message may quote rows, so only Reveal (see withheld.Reveal) includes it.
type SetupError struct {
	Op   string
	Hint string // what to do
	err  error
}

// Error returns the operation, the server's SQLSTATE, and what to do.
func (e *SetupError) Error() string { return e.text(error.Error) }

// Reveal returns the operation, the server's message, and what to do.
func (e *SetupError) Reveal() string { return e.text(withheld.Reveal) }

func (e *SetupError) text(message func(error) string) string {
	text := e.Op
	if e.err != nil {
		text += ": " + message(sqlstate.Withhold(e.err))
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

// Transient reports whether err may go away without action: the database is down, restarting or full.
func Transient(err error) bool {
	var t *transientError
	return errors.As(err, &t)
}

// classify maps the error of a trial to the SQLSTATE of an outcome, or to a fault of the set-up or the connection.
func classify(err error) (state string, _ error) {
	var long *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &long) {
		return TooLarge, nil // the session cannot be used any more
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return "", &transientError{op: "replay", err: err}
	}
	switch pg.Code {
	case "57014", "55P03":
		return Timeout, nil
	case "53400": // temp_file_limit, set by the operator
		return pg.Code, nil
	case "42501":
		return "", &SetupError{Op: "replay", Hint: "grant the replay role USAGE on the neighbour schemas, SELECT on their tables and EXECUTE on the functions", err: err}
	case "42P01", "3F000":
		return "", &SetupError{Op: "replay", Hint: "the shadow database lacks a table that the query reads: create the copies again if it is protected; a table of privacy.public must exist in the shadow database under its own name (`dpwatch config check --connect` names it)", err: err}
	case "42883":
		return "", &SetupError{Op: "replay", Hint: "the shadow database lacks a function that the query calls: install the engine's functions there, on shadow.search_path", err: err}
	case "0A000":
		if pg.Routine == "RevalidateCachedQuery" { // the copies were created again under a kept plan
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

// version returns a SetupError if every trial of every world failed with the same error of class 42 (a missing column or a
// changed type, for example). Production answered the statement, so the copies hold another version of the tables. An error
// in only some worlds is an outcome.
func (r *Run) checkTableDefinitions(rounds []Round) error {
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
	return &SetupError{Op: "set " + name, Hint: "the replay role cannot change this setting of the client's session", err: err}
}

// guarded calls f and turns a panic into an error: unexpected data from a server can make the decoding code panic, which
// would print the value and end the process.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("replay: %w", withheld.Recovered(r))
		}
	}()
	return f()
}
