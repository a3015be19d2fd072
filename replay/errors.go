package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Values of Outcome.SQLState for outcomes that have no SQLSTATE.
const (
	Timeout  = outcome.Timeout  // statement_timeout or lock_timeout expired, or the statement was cancelled
	TooLarge = outcome.TooLarge // more rows or bytes than Options allow
)

// SetupError reports that a query cannot be replayed on the shadow database as it is: a privilege, schema, table or
// function is missing, the server rejects a setting of the session, or the query writes. A retry gives the same error
// until an operator changes the set-up. The server's message may quote rows, so only Reveal (see withheld.Reveal)
// includes it.
type SetupError struct {
	Op   string
	Hint string // the cause and what to do
	err  error
}

// Error returns the operation, the server's SQLSTATE, and the hint.
func (e *SetupError) Error() string { return e.text(error.Error) }

// Reveal returns the operation, the server's message, and the hint.
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
	op   string
	err  error
	lost bool // see Lost
}

func (e *transientError) Error() string  { return e.op + ": " + sqlstate.Withhold(e.err).Error() }
func (e *transientError) Reveal() string { return e.op + ": " + withheld.Reveal(e.err) }
func (e *transientError) Unwrap() error  { return e.err }

// Transient reports whether the same replay may succeed later without a change to the query or to the configuration.
// That is so if the server reported an error of class 08, 53, 57P or 58 (connection, resources, shutdown, system), or
// if the error did not come from the server, like a lost connection. Some of them need an operator nevertheless: a full
// disk, for example.
func Transient(err error) bool {
	var t *transientError
	return errors.As(err, &t)
}

// classify maps the error of a trial to Outcome.SQLState (an SQLSTATE, Timeout or TooLarge), or to a SetupError or a
// transient error.
func classify(err error) (state string, _ error) {
	var long *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &long) {
		return TooLarge, nil // the session cannot be used any more
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return "", &transientError{op: "replay", err: err, lost: loses(err)}
	}
	switch pg.Code {
	case "57014", "55P03":
		return Timeout, nil
	case "53400": // temp_file_limit, set by the operator
		return pg.Code, nil
	case "42501":
		return "", &SetupError{Op: "replay", Hint: "grant the replay role USAGE on the schemas of the copies, SELECT on their tables, and EXECUTE on the functions that the query calls", err: err}
	case "42P01", "3F000":
		return "", &SetupError{Op: "replay", Hint: "the shadow database lacks a table that the query reads: create the copies again if the table is protected; create a table of privacy.public there under its own name (`dpwatch doctor` lists what is missing)", err: err}
	case "42883":
		return "", &SetupError{Op: "replay", Hint: "the shadow database lacks a function or operator that the query uses: install the engine's functions there, in a schema of shadow.search_path", err: err}
	case "0A000":
		if pg.Routine == "RevalidateCachedQuery" { // the copies were created again under a kept plan
			return "", &transientError{op: "replay", err: err}
		}
	case "25006":
		return "", &SetupError{Op: "replay", Hint: "the query writes, and trials are read-only: it cannot be replayed", err: err}
	}
	if temporary(pg.Code) {
		return "", &transientError{op: "replay", err: err, lost: loses(err)}
	}
	return sqlstate.Code(pg.Code), nil
}

// classify is the function of that name; of a missing privilege the hint names the role, the database, and what to
// grant. An error that ends the session is transient, whatever its SQLSTATE; an engine beside the database may end
// sessions after any error.
func (p *Player) classify(err error) (state string, _ error) {
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && loses(err) {
		return "", &transientError{op: "replay", err: err, lost: true}
	}
	state, err = classify(err)
	var setup *SetupError
	if errors.As(err, &setup) {
		if beside := p.deniedBeside(err); beside != "" {
			setup.Hint = beside
		} else if denied := connect.Denied(p.cfg, err); denied != "" {
			setup.Hint = denied + "; " + setup.Hint
		}
	}
	return state, err
}

// deniedBeside returns the hint for a trial that is denied access to a relation: it must not have it unless the relation
// is public, as the role may read the copies, which Check has verified. "" for other errors.
func (p *Player) deniedBeside(err error) string {
	kind, name := connect.DeniedObject(err)
	switch kind {
	case "schema":
		if !slices.Contains(p.opt.Originals, name) || slices.Contains(p.opt.SearchPath, name) {
			return ""
		}
	case "table", "view", "materialized view", "foreign table", "sequence", "large object":
		for _, public := range p.opt.Public {
			if t := ident.ParseTable(public); t.Name == name {
				return fmt.Sprintf("role %s lacks a privilege in database %s: GRANT SELECT ON TABLE %s TO %s", p.cfg.User, p.cfg.Database, ident.Quote(t.Schema, t.Name), ident.Quote(p.cfg.User))
			}
		}
	default:
		return ""
	}
	return fmt.Sprintf("a trial of role %s reads the %s %s in database %s, which is no copy of its world: do not grant it, since it is the same in all worlds; let the query and its functions read the copies, "+
		"list a table without personal data in privacy.public, or create the copies again if they lack privileges", p.cfg.User, kind, name, p.cfg.Database)
}

// temporary reports whether an SQLSTATE is about the state of the server or the connection.
func temporary(code string) bool {
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "53") || strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "58")
}

// settingError maps an error of a SET in a replay's session to a SetupError or a transient error.
func (p *Player) settingError(name string, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || temporary(pg.Code) {
		return &transientError{op: "set " + name, err: err}
	}
	hint := "the shadow database rejects this setting of the session: configure the database like production's"
	if pg.Code == "42501" {
		hint = fmt.Sprintf("the replay role may not change this setting: GRANT SET ON PARAMETER %s TO %s (PostgreSQL 15 or later)", name, ident.Quote(p.cfg.User))
	}
	return &SetupError{Op: "set " + name, Hint: hint, err: err}
}

// guarded calls f and turns a panic into an error: unexpected data from a server can make the decoding code panic,
// which would print the value and end the process.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("replay: %w", withheld.Recovered(r))
		}
	}()
	return f()
}
