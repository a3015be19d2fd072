//go:build linux

package chaos_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/program"
)

// binary is the dpwatch to test, which make builds.
func binary(t *testing.T) string {
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
	*program.Process
	killed int // auditors of it that the test has killed
}

// startSidecar starts dpwatch run and waits until it listens.
func startSidecar(t *testing.T, config string, more ...string) *sidecar {
	t.Helper()
	return start(t, append([]string{binary(t), "run", "--config", config}, more...)...)
}

// start starts a command that runs dpwatch and waits until it listens.
func start(t *testing.T, command ...string) *sidecar {
	t.Helper()
	p, err := program.Spawn(command[0], command[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the log of %v:\n%s", command, p.Log)
		}
	})
	eventually.True(t, "dpwatch is up", func() bool {
		up, err := p.Up()
		if err != nil {
			t.Fatal(err)
		}
		return up
	}, func() any { return p.Log.String() })
	return &sidecar{Process: p}
}

func (s *sidecar) get(t *testing.T, path string) string {
	t.Helper()
	body, err := s.Fetch(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return body
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
audit: {max_trials: 1000000, hoist: false, workers: %d, sessions: 4, sequences: false}
engine: {name: chaos}
ledger: {dsn: %q}
`, upstream, shadow, workers, ledger)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
