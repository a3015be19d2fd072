//go:build linux

package chaos_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/eventually"
)

// program is the dpwatch to test, which make builds.
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("DPWATCH_CHAOS_PROGRAM")
	if path == "" {
		path = "../../bin/dpwatch"
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: build it with make build, or set DPWATCH_CHAOS_PROGRAM", err)
	}
	return path
}

// sidecar is a running dpwatch.
type sidecar struct {
	cmd         *exec.Cmd
	ended       chan struct{}
	log         *journal
	addr, admin string
}

// journal holds the log of a process.
type journal struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// startSidecar starts dpwatch run and waits until it listens.
func startSidecar(t *testing.T, config string) *sidecar {
	t.Helper()
	s := &sidecar{cmd: exec.Command(program(t), "run", "--config", config), ended: make(chan struct{}), log: &journal{}}
	s.cmd.Stderr = s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.cmd.Wait(); close(s.ended) }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
		_ = s.cmd.Process.Kill()
		<-s.ended
		if t.Failed() {
			t.Logf("the log of dpwatch:\n%s", s.log)
		}
	})
	eventually.True(t, "dpwatch is up", func() bool {
		for line := range strings.Lines(s.log.String()) {
			var up struct {
				Message       string `json:"msg"`
				Listen, Admin []string
			}
			if json.Unmarshal([]byte(line), &up) == nil && up.Message == "dpwatch is up" {
				s.addr, s.admin = up.Listen[0], up.Admin[0]
				return true
			}
		}
		return false
	}, func() any { return s.log.String() })
	return s
}

// auditor returns the process id of the auditor, 0 if there is none at the moment.
func (s *sidecar) auditor() int {
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(s.cmd.Process.Pid), "-f", "auditor").Output() // it fails if there is none
	first, _, _ := strings.Cut(string(out), "\n")
	return number([]byte(first))
}

func (s *sidecar) get(t *testing.T, path string) string {
	t.Helper()
	r, err := http.Get("http://" + s.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// settled reports whether the auditor has, after the given time, stored everything that it tried to.
func (s *sidecar) settled(t *testing.T, after time.Time) bool {
	t.Helper()
	var v struct {
		Audit struct {
			At     time.Time
			Ledger struct {
				Restored bool
				Trouble  string
				Unsaved  int `json:"unsaved_audits"`
			}
		}
	}
	if err := json.Unmarshal([]byte(s.get(t, "/api/status")), &v); err != nil {
		t.Fatal(err)
	}
	l := v.Audit.Ledger
	return v.Audit.At.After(after) && l.Restored && l.Trouble == "" && l.Unsaved == 0
}

// missed returns how many captured statements the relay counts as lost, dropped or set aside.
func (s *sidecar) missed(t *testing.T) int {
	t.Helper()
	metrics, sum := s.get(t, "/metrics"), 0
	for _, name := range []string{"dpwatch_statements_lost_total", "dpwatch_capture_dropped_total", "dpwatch_statements_set_aside_total"} {
		m := regexp.MustCompile(`(?m)^` + name + ` ([0-9]+)$`).FindStringSubmatch(metrics)
		if m == nil {
			t.Fatalf("/metrics has no %s", name)
		}
		sum += number([]byte(m[1]))
	}
	return sum
}

// configuration writes the configuration of dpwatch. Every trial is an execution of the whole query.
func configuration(t *testing.T, upstream, shadow, ledger string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dpwatch.yaml")
	text := fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q, drain_timeout: 1s}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q}
privacy: {protected: [public.people]}
claims: {safe_functions: [noisy], trust: [comment]}
audit: {max_trials: 1000000, hoist: false, workers: %d, batch_trials: %d, sessions: 4, retry_after: 200ms}
engine: {name: chaos}
ledger: {dsn: %q}
`, upstream, shadow, workers, batch, ledger)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
