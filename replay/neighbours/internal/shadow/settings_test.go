package shadow_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/shadow"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestSettings: settings of a database or a role neither end a long command nor change what it reads.
func TestSettings(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	var name string
	if err := pgtest.Connect(t, dsn).QueryRow(t.Context(), "SELECT current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{
		"statement_timeout = '1h'", "lock_timeout = '1h'", "idle_session_timeout = '1h'", "idle_in_transaction_session_timeout = '1h'",
		"default_transaction_isolation = 'serializable'", "standard_conforming_strings = off",
		"quote_all_identifiers = on", "client_encoding = 'LATIN1'", "datestyle = 'sql, dmy'", "extra_float_digits = 0", "default_transaction_read_only = on",
	} {
		pgtest.Exec(t, dsn, "ALTER DATABASE "+name+" SET "+setting)
	}
	s := &shadow.DB{Options: &spec.Options{Target: dsn}}
	conn, err := s.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) //nolint:errcheck // only read
	src, err := source.Open(t.Context(), &spec.Options{Source: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close(t.Context())
	for name, want := range map[string]string{
		"statement_timeout": "0", "lock_timeout": "0", "idle_session_timeout": "0", "idle_in_transaction_session_timeout": "0",
		"standard_conforming_strings": "on", "quote_all_identifiers": "off", "client_encoding": "UTF8", "datestyle": "ISO, DMY",
		"extra_float_digits": "3",
	} {
		for what, c := range map[string]interface {
			QueryRow(context.Context, string, ...any) pgx.Row
		}{"shadow": conn, "source": src.Tx} {
			var got string
			if err := c.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", what, name, got, want)
			}
		}
	}
	var isolation, readOnly string
	if err := conn.QueryRow(t.Context(), "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')").Scan(&isolation, &readOnly); err != nil {
		t.Fatal(err)
	}
	if isolation != "read committed" || readOnly != "off" {
		t.Errorf("transactions in the shadow database are %s, read only %s", isolation, readOnly)
	}
}
