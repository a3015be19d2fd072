// Package sqlstate describes PostgreSQL errors without their messages, which can contain values of rows and literals of
// queries: `invalid input syntax for type integer: "..."`, `Key (id)=(...) already exists`, and any text that a
// function raises.
//
// In: errors of pgconn. Out: errors and texts with the SQLSTATE and its condition name from PostgreSQL's manual.
package sqlstate

import (
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Code returns a server's SQLSTATE, or "unknown" if it is not valid: a server other than PostgreSQL can send any text.
func Code(code string) string {
	if len(code) != 5 {
		return "unknown"
	}
	for i := range len(code) {
		if c := code[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return "unknown"
		}
	}
	return code
}

// Describe returns the SQLSTATE and its name: SQLSTATE 22P02 (invalid_text_representation).
func Describe(code string) string {
	code = Code(code)
	text := "SQLSTATE " + code
	if name, ok := names[code]; ok {
		return text + " (" + name + ")"
	}
	if name, ok := classes[code[:2]]; ok {
		return text + " (class " + name + ")"
	}
	return text
}

// Withhold returns an error in whose message the SQLSTATE replaces the message of every server error. withheld.Reveal
// returns the full message. Without server errors, and for nil, Withhold returns err unchanged.
func Withhold(err error) error {
	all := appendServerErrors(nil, err)
	if len(all) == 0 {
		return err
	}
	text := err.Error()
	for _, pg := range all {
		full, short := pg.Error(), Describe(pg.Code)
		if !strings.Contains(text, full) { // written in an unknown form: keep none of it
			return &withheldError{short, err}
		}
		text = strings.ReplaceAll(text, full, short)
	}
	return &withheldError{text, err}
}

type withheldError struct {
	text  string
	cause error
}

// Error returns the message without the server's text.
func (e *withheldError) Error() string { return e.text }

// Reveal returns the full message of the cause.
func (e *withheldError) Reveal() string { return e.cause.Error() }

func (e *withheldError) Unwrap() error { return e.cause }

// appendServerErrors appends the server errors in err's tree.
func appendServerErrors(all []*pgconn.PgError, err error) []*pgconn.PgError {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case *pgconn.PgError:
		return append(all, e)
	case interface{ Unwrap() error }:
		return appendServerErrors(all, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			all = appendServerErrors(all, inner)
		}
	}
	return all
}
