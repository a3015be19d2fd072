// Package sqlstate describes errors of PostgreSQL without their messages, which quote values of rows and literals of
// queries: `invalid input syntax for type integer: "..."`, `Key (id)=(...) already exists`, and whatever a function raises.
//
// In: errors of pgconn. Out: errors and texts with the SQLSTATE and the name that PostgreSQL's manual gives it.
package sqlstate

import (
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Code returns a server's SQLSTATE, or "unknown" for what is none: a server that is not PostgreSQL may send any text.
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

// Withhold returns an error whose message has, for every error that a server sent, its SQLSTATE in the place of its message.
// withheld.Reveal returns the whole. An error that no server sent, and nil, is returned as it is.
func Withhold(err error) error {
	all := appendServerErrors(nil, err)
	if len(all) == 0 {
		return err
	}
	text := err.Error()
	for _, pg := range all {
		full, short := pg.Error(), Describe(pg.Code)
		if !strings.Contains(text, full) { // written in a form that is not known: nothing of it is kept
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

// Error returns the message with the server's words left out.
func (e *withheldError) Error() string { return e.text }

// Reveal returns the message of the cause.
func (e *withheldError) Reveal() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *withheldError) Unwrap() error { return e.cause }

// appendServerErrors appends the errors in err's tree that a server sent.
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
