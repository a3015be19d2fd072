package relay

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/admin"
)

// An IPv4 address, also 0.0.0.0, is listened on with IPv4 only, so that a firewall for IPv4 is sufficient.
func TestListenFamily(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "0.0.0.0"} {
		l, err := admin.Listen(config.Address{Network: "tcp", Address: host + ":0"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if got, _, _ := net.SplitHostPort(l.Addr().String()); got != host {
			t.Errorf("listens on %s, want %s alone", l.Addr(), host)
		}
	}
}

// Only an address in use has the advice to stop the program that uses it.
func TestListenError(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tc := range []struct {
		address config.Address
		advice  bool
	}{
		{config.Address{Network: "tcp", Address: taken.Addr().String()}, true},
		{config.Address{Network: "unix", Address: filepath.Join(t.TempDir(), "missing", "s")}, false},
	} {
		one := route{cfg: config.Route{Listen: []config.Address{tc.address}}}
		if err := one.listen(); err == nil || strings.Contains(err.Error(), "stop the program that uses it") != tc.advice {
			t.Errorf("%s: %v", tc.address, err)
		}
	}
}

// The log and doctor report which lines of pg_hba.conf match other clients if only one leg uses TLS.
func TestHBANote(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ tls, upstream, want string }{
		{"disable", "disable", ""},
		{"disable", "require", "hostnossl lines (hostnossl ... reject) do not"},
		{"allow", "verify-full", "hostnossl lines (hostnossl ... reject) do not"},
		{"require", "verify-full", ""},
		{"require", "disable", "hostssl lines do not"},
		{"allow", "disable", "hostssl lines do not"},
		{"passthrough", "disable", ""},
	} {
		one := route{cfg: config.Route{TLS: config.TLS{Mode: tc.tls}, UpstreamTLS: config.UpstreamTLS{Mode: tc.upstream}}}
		if got := one.HBANote(); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("tls %s, upstream_tls %s: %q, want %q", tc.tls, tc.upstream, got, tc.want)
		}
	}
}
