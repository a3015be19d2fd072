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
	if got := (&Options{}).say(err); got != "replay: SQLSTATE 22P02 (invalid_text_representation)" {
		t.Error(got)
	}
	if got := (&Options{ShowValues: true}).say(err); !strings.Contains(got, "MRN777") {
		t.Error(got)
	}
}
