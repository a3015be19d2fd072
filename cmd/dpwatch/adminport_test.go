package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A page that rebinds its own name to the admin port (DNS rebinding) sends its name as Host, and is same-origin to the
// browser. It can neither read nor change anything, with or without a token file.
func TestAdminRebinding(t *testing.T) {
	t.Parallel()
	for _, extra := range []string{"", "ADMIN TOKEN"} {
		s := startSidecar(t, extra)
		_, port, _ := net.SplitHostPort(s.admin)
		evil := []string{"Host", "evil.example:" + port, "Origin", "http://evil.example:" + port, "Sec-Fetch-Site", "same-origin"}
		for _, request := range []struct{ method, path string }{
			{http.MethodPost, "/api/pause"}, {http.MethodGet, "/api/status"}, {http.MethodGet, "/metrics"},
		} {
			if code, body := s.ask(t, request.method, request.path, evil...); code != http.StatusForbidden || !strings.Contains(body, "evil.example") {
				t.Errorf("%s %s: %d %q, want 403", request.method, request.path, code, body)
			}
		}
		if s.status(t).Audit.Pace.Held == "paused" {
			t.Error("replays are paused")
		}
		if n := s.metric(t, `dpwatch_admin_refused_requests_total{reason="host"}`); n != 3 {
			t.Errorf("%d refused requests are counted, want 3", n)
		}
	}
}

// Without a token file every local user can read the status, and no user can change anything.
func TestAdminWithoutToken(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "")
	if code, _ := s.get(t, "/api/status"); code != http.StatusOK {
		t.Errorf("status: %d", code)
	}
	for _, path := range []string{"/api/pause", "/api/resume"} {
		if code, body := s.ask(t, http.MethodPost, path); code != http.StatusForbidden || !strings.Contains(body, "admin.token_file") || !strings.Contains(body, "SIGUSR1") {
			t.Errorf("POST %s: %d %q, want 403 and what to do", path, code, body)
		}
	}
	if !strings.Contains(s.log.String(), "POST /api/pause and /api/resume are refused") {
		t.Error("the log does not say so")
	}
}

// Only the user of the process can use a Unix socket, and needs no token to pause; other addresses have their own
// protection.
func TestAdminListeners(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "dpw") // a socket path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "admin.sock")
	s := &sidecar{}
	s.run(t, file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: 127.0.0.1:1}
admin:
  - {listen: "127.0.0.1:0"}
  - {listen: "0.0.0.0:0", metrics_only: true}
  - {listen: unix:%s}
shadow: {dsn: "postgres://x@127.0.0.1:1/x"}
privacy: {protected: [public.people]}
`, socket)))
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the socket %v, %v; want 0600", info.Mode(), err)
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	r, err := client.Post("http://anything/api/pause", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusNoContent {
		t.Errorf("pause through the socket: %d", r.StatusCode)
	}
	_, port, _ := net.SplitHostPort(s.admins[1])
	open := &sidecar{process: s.process, admin: "127.0.0.1:" + port}
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503, "/metrics": 200, "/api/status": 404, "/": 404} {
		if code, _ := open.ask(t, http.MethodGet, path, "Host", "10.1.2.3:"+port); code != want {
			t.Errorf("metrics only: GET %s: %d, want %d", path, code, want)
		}
	}
	if code, _ := open.ask(t, http.MethodPost, "/api/pause"); code != http.StatusNotFound {
		t.Errorf("metrics only: pause: %d", code)
	}
}

// The auditor process has no secret in its environment but audits, and PG* variables do not change its connections.
func TestAuditorEnvironment(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	const password, inFile = "pw-in-the-environment", "pw-in-a-file"
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(inFile+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startSidecar(t, "PASSWORD FILE "+path)
	pid := s.auditor(t, 0)
	exec0(t, s.connect(t), "SELECT noisy(count(*), 0.5) FROM people /*dp_epsilon='0.2'*/")
	s.until(t, "the verdict", func() bool { a := s.status(t).Audit.Audits; return len(a) == 1 && a[0].State == "decided" })
	for _, name := range []string{"environ", "cmdline"} {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{password, inFile, "SHADOW_", "PG", "HOME", "PATH"} {
			if strings.Contains(string(content), secret) {
				t.Errorf("/proc/PID/%s of the auditor holds %q: %q", name, secret, content)
			}
		}
	}
	if log := s.log.String(); !strings.Contains(log, "PGOPTIONS") || !strings.Contains(log, "these environment variables have no effect on the auditor") || strings.Contains(log, password) {
		t.Errorf("the log does not name the variables that have no effect, or holds the password\n%s", log)
	}
}
