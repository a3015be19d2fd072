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
