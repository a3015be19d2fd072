package main

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestReload: SIGHUP and POST /api/reload bring a changed file into force, or none of it; the client's session goes on.
func TestReload(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "LEDGER ADMIN TOKEN")
	s.until(t, "the ledger", func() bool { return strings.Contains(s.log.String(), "audits restored from the ledger") })
	conn := s.connect(t)
	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	change := func(pairs ...string) {
		t.Helper()
		if err := os.WriteFile(s.config, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	metric := func(want string) func() bool {
		return func() bool {
			_, metrics := s.get(t, "/metrics")
			return strings.Contains(metrics, "\ndpwatch_config_last_reload_successful "+want+"\n")
		}
	}
	s.until(t, "the configuration is in force", metric("1"))
	first := s.auditor(t, 0)

	change("max_trials: 500", "max_trials: -1")
	if err := s.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.until(t, "the fault is reported", metric("0"))
	change("max_trials: 500", "max_trials: 300", "upstream:", "max_sessions: 7, upstream:")
	if code, body := s.ask(t, http.MethodPost, "/api/reload"); code != http.StatusBadRequest || !strings.Contains(body, "restart dpwatch for changes of proxy.max_sessions") {
		t.Errorf("%d %s", code, body)
	}
	if now := s.auditor(t, 0); now != first {
		t.Errorf("auditor %d, before %d: nothing was taken over", now, first)
	}

	change("max_trials: 500", "max_trials: 300")
	if code, body := s.ask(t, http.MethodPost, "/api/reload"); code != http.StatusNoContent {
		t.Fatalf("%d %s", code, body)
	}
	s.until(t, "the configuration is in force again", metric("1"))
	s.auditor(t, first)
	exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people")
	var audits []decidedAudit
	s.until(t, "a verdict", func() bool { audits = s.audits(t); return len(audits) == 1 && audits[0].State == "decided" })
	if n := audits[0].Report.Trials.D0; n != 300 {
		t.Errorf("%d pairs of trials, want 300 as the new configuration says", n)
	}
}
