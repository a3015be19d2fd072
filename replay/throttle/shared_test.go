package throttle_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

func TestShared(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	other, err := pgtemp.Start(t.Context(), pgtemp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Stop() })
	conn := pgtest.Connect(t, cluster.DSN("postgres"))
	if _, err := conn.Exec(t.Context(), "CREATE ROLE plain LOGIN PASSWORD 'x'; REVOKE EXECUTE ON FUNCTION pg_control_system FROM PUBLIC"); err != nil {
		t.Fatal(err)
	}
	shadow := cluster.UserDSN("postgres", "plain", "x")
	here, there := fmt.Sprintf("%s:%d", cluster.Host(), cluster.Port()), fmt.Sprintf("%s:%d", other.Host(), other.Port())
	away := "postgres://x@127.0.0.1:1/x?connect_timeout=2"
	for _, tc := range []struct {
		name   string
		shadow string
		others []throttle.Other
		want   string
		fault  string
	}{
		{"the same server", shadow, []throttle.Other{{Key: "privacy.catalog", DSN: cluster.DSN("postgres")}}, "privacy.catalog", ""},
		{"another server", shadow, []throttle.Other{{Key: "privacy.catalog", DSN: other.DSN("postgres")}}, "", ""},
		{"the second is the same", shadow, []throttle.Other{{Key: "privacy.catalog", DSN: other.DSN("postgres")}, {Key: "neighbours.source", DSN: cluster.DSN("postgres")}}, "neighbours.source", ""},
		{"one cannot be looked at", shadow, []throttle.Other{{Key: "privacy.catalog", DSN: away}}, "", "the server of privacy.catalog: "},
		{"one cannot be looked at, and another is the same", shadow, []throttle.Other{{Key: "privacy.catalog", DSN: away}, {Key: "neighbours.source", DSN: cluster.DSN("postgres")}}, "neighbours.source", ""},
		{"the shadow cannot be looked at", away, []throttle.Other{{Key: "privacy.catalog", DSN: cluster.DSN("postgres")}}, "", "the server of shadow.dsn: "},
		{"the address", shadow, []throttle.Other{{Key: "proxy.upstream", Network: "tcp", Address: here}}, "proxy.upstream", ""},
		{"the address by name", shadow, []throttle.Other{{Key: "proxy.upstream", Network: "tcp", Address: strings.Replace(here, "127.0.0.1", "localhost", 1)}}, "proxy.upstream", ""},
		{"another address", shadow, []throttle.Other{{Key: "proxy.upstream", Network: "tcp", Address: there}}, "", ""},
		{"a socket", fmt.Sprintf("host=/tmp/pg port=%d user=x", 5433), []throttle.Other{{Key: "proxy.upstream", Network: "unix", Address: filepath.Join("/tmp/pg", ".s.PGSQL.5433")}}, "proxy.upstream", ""},
		{"another socket", "host=/tmp/pg port=5433 user=x", []throttle.Other{{Key: "proxy.upstream", Network: "unix", Address: "/tmp/pg/.s.PGSQL.5432"}}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := throttle.Shared(t.Context(), tc.shadow, tc.others)
			if got != tc.want || (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("got %q, %v; want %q, %q", got, err, tc.want, tc.fault)
			}
		})
	}
}
