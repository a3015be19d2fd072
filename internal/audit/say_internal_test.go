package audit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// TestPanicText: a recovered panic is described without what it may hold of a row.
func TestPanicText(t *testing.T) {
	t.Parallel()
	var index []int
	fault := func() (r any) {
		defer func() { r = recover() }()
		return index[len(index)+3]
	}()
	for _, c := range []struct {
		r             any
		values, wants string
	}{
		{"row MRN777", "row MRN777", "a value of type string (withheld)"},
		{errors.New("row MRN777"), "row MRN777", "a value of type *errors.errorString (withheld)"},
		{fault, "index out of range", "index out of range [3] with length 0"},
	} {
		hidden, open := &Auditor{}, &Auditor{opt: Options{ShowValues: true}}
		if got := hidden.panicText(c.r); !strings.Contains(got, c.wants) || strings.Contains(got, "MRN777") {
			t.Errorf("%q, want %q", got, c.wants)
		}
		if got := open.panicText(c.r); !strings.Contains(got, c.values) {
			t.Errorf("with values %q, want %q", got, c.values)
		}
	}
}

func TestSay(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("replay: %w", sqlstate.Withhold(&pgconn.PgError{Severity: "ERROR", Code: "22P02", Message: `syntax: "MRN777"`}))
	if got := (&Auditor{}).say(err); got != "replay: SQLSTATE 22P02 (invalid_text_representation)" {
		t.Error(got)
	}
	if got := (&Auditor{opt: Options{ShowValues: true}}).say(err); !strings.Contains(got, "MRN777") {
		t.Error(got)
	}
}

// TestSalt: the salt is an audit's own, and another one in every process.
func TestSalt(t *testing.T) {
	t.Parallel()
	a, b := &Auditor{secret: "a"}, &Auditor{secret: "b"}
	k := a.salt("k")
	if again := a.salt("k"); k != again || k == a.salt("l") || k == b.salt("k") || len(k) != 32 {
		t.Error("salts are not of an audit and a process each")
	}
}
