package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestNames: the relay sends the auditor the statements that name what reads a protected table, according to the
// engine's catalog, and not those that name a table with a similar name. A reload brings another protected table into
// force.
func TestNames(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, `ADMIN TOKEN, TUNING {"catalog_refresh": "1s"}`)
	conn := s.connect(t)
	exec0(t, conn, "CREATE TABLE log_people (x int)")
	reload := func(privacy string) {
		t.Helper()
		text, err := os.ReadFile(s.config)
		if err != nil {
			t.Fatal(err)
		}
		text = regexp.MustCompile(`(?m)^privacy: .*$`).ReplaceAllLiteral(text, []byte(privacy))
		if err := os.WriteFile(s.config, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, body := s.ask(t, http.MethodPost, "/api/reload"); code != http.StatusNoContent {
			t.Fatalf("%d %s", code, body)
		}
	}
	skipped := func(reason string) string {
		_, metrics := s.get(t, "/metrics")
		if m := regexp.MustCompile(`dpwatch_(?:statements|queries)_skipped_total\{reason="` + reason + `"\} (\d+)`).FindStringSubmatch(metrics); m != nil {
			return m[1]
		}
		return "0"
	}
	// sent sends a statement until one is skipped by the relay (unprotected), or by the auditor, which has its own
	// reasons.
	sent := func(sql, reason string) {
		t.Helper()
		before := skipped(reason)
		s.until(t, sql+" is counted as "+reason, func() bool {
			exec0(t, conn, sql)
			return skipped(reason) != before
		})
	}
	sent("SELECT count(*) FROM log_people", "unprotected")

	reload(fmt.Sprintf("privacy: {protected: [public.people], catalog: %q}", s.direct))
	sent("SELECT count(*) FROM log_people", "unprotected")
	exec0(t, conn, "CREATE VIEW recent AS SELECT * FROM people")
	sent("SELECT count(*) FROM recent", "no_copy")

	reload("privacy: {protected: [public.other]}")
	sent("SELECT count(*) FROM people", "unprotected")
	if !strings.Contains(s.log.String(), "new configuration") {
		t.Error("the auditor was not started again")
	}
}
