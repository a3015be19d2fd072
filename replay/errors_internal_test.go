package replay

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A setting that a server rejects is a SetupError that says what to do; a server that shuts down or lacks resources
// meanwhile, and a lost connection, are transient.
func TestSettingError(t *testing.T) {
	t.Parallel()
	p := &Player{cfg: &pgconn.Config{User: "replayer"}}
	for _, tc := range []struct {
		name string
		err  error
		hint string // "" for a transient error
	}{
		{"no privilege", &pgconn.PgError{Code: "42501"}, `GRANT SET ON PARAMETER work_mem TO "replayer"`},
		{"invalid value", &pgconn.PgError{Code: "22023"}, "configure the database like production's"},
		{"shutdown", &pgconn.PgError{Code: "57P01"}, ""},
		{"out of memory", &pgconn.PgError{Code: "53200"}, ""},
		{"lost connection", io.ErrUnexpectedEOF, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := p.settingError("work_mem", tc.err)
			var setup *SetupError
			switch isSetup := errors.As(err, &setup); {
			case Transient(err) != (tc.hint == ""), isSetup != (tc.hint != ""):
				t.Errorf("got %T %v", err, err)
			case isSetup && !strings.Contains(setup.Hint, tc.hint):
				t.Errorf("hint %q, want %q", setup.Hint, tc.hint)
			}
		})
	}
}

// TestDenied: nobody is told to grant what a trial reads besides its copies.
func TestDenied(t *testing.T) {
	t.Parallel()
	p := &Player{cfg: &pgconn.Config{User: "replayer", Database: "shadow"}, opt: Options{Public: []string{"ref.cities"}, Originals: []string{"shop"}}}
	for message, want := range map[string]string{
		"permission denied for table people":      "a trial of role replayer reads the table people in database shadow, which is no copy of its world: do not grant it",
		"permission denied for sequence numbers":  "do not grant it",
		"permission denied for schema shop":       "do not grant it",
		"permission denied for table cities":      `GRANT SELECT ON TABLE "ref"."cities" TO "replayer"`,
		"permission denied for function laplace":  `GRANT EXECUTE ON ROUTINE "laplace" TO "replayer"`,
		"permission denied for schema dp":         `GRANT USAGE ON SCHEMA "dp" TO "replayer"`,
		"a function says: a value of table peopl": "lacks a privilege",
	} {
		err := error(&pgconn.PgError{Code: "42501", Message: message, Routine: "aclcheck_error"})
		_, err = p.classify(err)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(want, "do not") && strings.Contains(err.Error(), "GRANT") {
			t.Errorf("%s: %v, want %q", message, err, want)
		}
	}
}
