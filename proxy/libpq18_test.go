package proxy_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// libpq18 is the installed psql, of any version, with the client library of PostgreSQL 18: it uses protocol 3.2 and
// supports direct TLS.
const libpq18 = "psql with libpq 18"

func libpq18Env() string {
	return "LD_LIBRARY_PATH=" + filepath.Join(filepath.Dir(postgres18.binDir), "lib")
}

// TestLibpq18: libpq negotiates 3.2, and its cancel request, with the longer key, stops the right statement.
func TestLibpq18(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	c := needs18(t)
	postgres.ensure(t) // for its psql
	psql, err := exec.LookPath(postgres.tool("psql"))
	if err != nil {
		t.Skip("SKIPPED: no psql (apt-get install postgresql-client)")
	}
	o := observe(t, c.upstream(t), 0, nil)
	host, port, err := net.SplitHostPort(o.outer.addr)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), psql, "-XAt", "-v", "VERBOSITY=verbose", "-c", "SELECT 'libpq 18'", "-c", "SELECT pg_sleep(602)", "-c", "SELECT 'not cancelled'",
		"host="+host+" port="+port+" user=ann dbname=bank gssencmode=disable sslmode=disable min_protocol_version=3.2 max_protocol_version=3.2")
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+t.TempDir(), libpq18Env())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watch := connect(t, c.upstream(t).Address, "")
	eventually.True(t, "the statement runs", func() bool { return backends(t, watch, "SELECT pg_sleep(602)%") == 1 })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // psql exits with 1 if the last -c failed
	if got := out.String(); !strings.HasPrefix(got, "libpq 18\n") || !strings.Contains(got, "57014") {
		t.Errorf("psql printed %q, want the first answer and SQLSTATE 57014", got)
	}
	o.sink.find(t, "SELECT 'libpq 18'")
	if n := o.Stats().CancelRequests; n != 1 {
		t.Errorf("%d cancel requests, want 1", n)
	}
	o.same(t)
}
