package sqlstate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// oddError prints a server's message in an unknown form.
type oddError struct{ pg *pgconn.PgError }

func (e *oddError) Error() string { return "said " + e.pg.Message }
func (e *oddError) Unwrap() error { return e.pg }

func TestWithhold(t *testing.T) {
	t.Parallel()
	pg := &pgconn.PgError{Severity: "ERROR", Code: "23505", Message: "Key (id)=(MRN777) exists", Detail: "MRN777", Hint: "MRN777"}
	own := errors.New("dial tcp: refused")
	for _, c := range []struct {
		err         error
		want, whole string
	}{
		{own, "dial tcp: refused", "dial tcp: refused"},
		{pg, "SQLSTATE 23505 (unique_violation)", pg.Error()},
		{fmt.Errorf("op: %w", pg), "op: SQLSTATE 23505 (unique_violation)", "op: " + pg.Error()},
		{errors.Join(own, fmt.Errorf("op: %w", pg)), "dial tcp: refused\nop: SQLSTATE 23505 (unique_violation)", "dial tcp: refused\nop: " + pg.Error()},
		{&oddError{pg}, "SQLSTATE 23505 (unique_violation)", "said " + pg.Message},
	} {
		got := sqlstate.Withhold(c.err)
		if got.Error() != c.want || withheld.Reveal(got) != c.whole || !errors.Is(got, c.err) {
			t.Errorf("%q, %q; want %q, %q", got.Error(), withheld.Reveal(got), c.want, c.whole)
		}
		if text := fmt.Sprintf("%v %+v %s %q", got, got, got, got); strings.Contains(text, "MRN777") {
			t.Errorf("printed: %s", text)
		}
	}
	if sqlstate.Withhold(nil) != nil {
		t.Error("nil is no error")
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"22012": "SQLSTATE 22012 (division_by_zero)", "22999": "SQLSTATE 22999 (class data_exception)", "ZZ000": "SQLSTATE ZZ000",
		"": "SQLSTATE unknown", "MRN77\n": "SQLSTATE unknown", "mrn77": "SQLSTATE unknown",
	} {
		if got := sqlstate.Describe(code); got != want {
			t.Errorf("%q: %q, want %q", code, got, want)
		}
	}
}

// The messages of a real server's errors contain a value and a literal; the error of a refused connection keeps its
// address.
func TestServer(t *testing.T) {
	t.Parallel()
	conn := pgtest.Connect(t, pgtest.Database(t))
	for _, sql := range []string{
		`SELECT x::int FROM (VALUES ('MRN777')) AS v (x)`,
		`SELECT 'MRN777'::int`,
		`DO $$ BEGIN RAISE EXCEPTION 'MRN777' USING DETAIL = 'MRN777', ERRCODE = '42501'; END $$`,
		`CREATE TEMPORARY TABLE t AS SELECT 'MRN777' AS x; CREATE UNIQUE INDEX ON t (x); INSERT INTO t VALUES ('MRN777')`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		if err == nil {
			t.Fatalf("%s: no error", sql)
		}
		if got := sqlstate.Withhold(err); strings.Contains(got.Error(), "MRN777") || !strings.Contains(got.Error(), "SQLSTATE ") {
			t.Errorf("%s: %s", sql, got)
		}
	}
	_, err := pgconn.Connect(t.Context(), strings.Replace(conn.Config().ConnString(), conn.Config().Database, "nowhere", 1))
	if got := sqlstate.Withhold(err); err == nil || !strings.Contains(got.Error(), "SQLSTATE 3D000 (invalid_catalog_name)") || !strings.Contains(got.Error(), conn.Config().Host) {
		t.Errorf("%v", got)
	}
}
