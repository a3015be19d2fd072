package app

import (
	"net"
	"testing"

	"github.com/dpwatch/dpwatch/config"
)

// An IPv4 address, also 0.0.0.0, is listened on with IPv4 only, so that a firewall for IPv4 is sufficient.
func TestListenFamily(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "0.0.0.0"} {
		l, err := listen(config.Address{Network: "tcp", Address: host + ":0"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if got, _, _ := net.SplitHostPort(l.Addr().String()); got != host {
			t.Errorf("listens on %s, want %s alone", l.Addr(), host)
		}
	}
}
