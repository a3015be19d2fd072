package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tlsAdmin is a sidecar without engine and shadow whose first admin listener requires TLS and a token.
type tlsAdmin struct {
	*sidecar
	tokens, cert, key string // files
	socket            string // of the second admin listener
}

func startTLSAdmin(t *testing.T) *tlsAdmin {
	t.Helper()
	dir, err := os.MkdirTemp("", "dpw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &tlsAdmin{sidecar: &sidecar{}, socket: filepath.Join(dir, "a.sock"), tokens: file(t, "token", strings.Repeat("x", 32))}
	s.cert, s.key = certificate(t)
	s.run(t, file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: 127.0.0.1:1}
admin:
  - {listen: "0.0.0.0:0", token_file: %q, tls: {certificate: %q, key: %q}}
  - {listen: unix:%s}
shadow: {dsn: "postgres://x@127.0.0.1:1/x"}
privacy: {protected: [public.people]}
`, s.tokens, s.cert, s.key, s.socket)))
	return s
}

// health queries a listener that requires TLS and a token, and a Unix socket; other sections of the configuration do
// not matter.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := startTLSAdmin(t)
	socket := s.socket
	_, port, _ := net.SplitHostPort(s.admins[0])
	overTLS := file(t, "tls.yaml", fmt.Sprintf("admin: {listen: 0.0.0.0:%s, token_file: /gone, tls: {certificate: /gone, key: /gone}}\nshadow: {dsn: '${UNSET_HERE}'}\n", port))
	overUnix := file(t, "unix.yaml", fmt.Sprintf("admin: {listen: ['127.0.0.1:1', 'unix:%s']}\n", socket))
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--config", overTLS}, exitDone, "alive"},
		{[]string{"--config", overUnix}, exitDone, "alive"},
		{[]string{"--address", "https://127.0.0.1:" + port}, exitDone, "alive"},
		{[]string{"--address", "https://127.0.0.1:" + port + "/"}, exitDone, "alive"},
		{[]string{"--address", "unix:" + socket}, exitDone, "alive"},
		{[]string{"--config", overTLS, "--ready"}, exitFailure, "not ready: 0.0.0.0:" + port + " answers 503 Service Unavailable: route 127.0.0.1:0: the engine cannot be reached"},
		{[]string{"--address", "127.0.0.1:" + port}, exitFailure, "400"}, // without TLS
		{[]string{"--address", "127.0.0.1:1"}, exitFailure, "not alive: 127.0.0.1:1 does not answer"},
		{[]string{"--address", "unix:/nonexistent"}, exitFailure, "does not answer"},
		{[]string{"--address", "nowhere"}, exitFailure, "is not an address"},
		{[]string{"--address", "ftp://127.0.0.1:1"}, exitFailure, "write http://host:port"},
		{[]string{"--address", "http://127.0.0.1:1/x"}, exitFailure, "write http://host:port"},
		{[]string{"--address", "127.0.0.1:1", "--config", overUnix}, exitFailure, "give either"},
		{nil, exitFailure, "give either"},
		{[]string{"--config", "/nonexistent"}, exitFailure, "does not exist"},
		{[]string{"--config", file(t, "none.yaml", "proxy: {}\n")}, exitFailure, "has no admin.listen"},
		{[]string{"--config", file(t, "zero.yaml", "admin: {listen: '127.0.0.1:0'}\n")}, exitFailure, "port 0"},
		{[]string{"--config", file(t, "bad.yaml", "admin: {listen: 0.0.0.0:1}\n")}, exitFailure, "admin.listen: other machines"},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			args := append([]string{"status"}, tc.args...)
			if !slices.Contains(args, "--ready") {
				args = append(args, "--alive")
			}
			call(t, "", args...).want(t, tc.code, tc.want)
		})
	}
}

// A redirect is not followed, and only a part of another server's answer is shown.
func TestHealthOfAnother(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/livez2")
		w.WriteHeader(http.StatusFound)
		fmt.Fprint(w, strings.Repeat("x", 1<<20))
	}))
	defer server.Close()
	r := call(t, "", "status", "--alive", "--address", server.URL)
	r.want(t, exitFailure, "302 Found")
	if len(r.stderr) > 1000 {
		t.Errorf("%d bytes are printed", len(r.stderr))
	}
}
