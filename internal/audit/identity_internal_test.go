package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

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

// TestSalt: the salt differs between audits and between processes.
func TestSalt(t *testing.T) {
	t.Parallel()
	a, b := &desk{secret: "a"}, &desk{secret: "b"}
	k := a.salt("k")
	if again := a.salt("k"); k != again || k == a.salt("l") || k == b.salt("k") || len(k) != 32 {
		t.Error("salts are not of an audit and a process each")
	}
}
