package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
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

	captured := func() (n int) {
		_, metrics := s.get(t, "/metrics")
		_, _ = fmt.Sscanf(regexp.MustCompile(`dpwatch_queries_captured_total \d+`).FindString(metrics), "dpwatch_queries_captured_total %d", &n)
		return n
	}
	exec0(t, conn, "CREATE FUNCTION shops() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
	sent("SELECT shops()", "unprotected")
	const heads = " RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM public.people'"
	for _, c := range []struct{ proxied, beside, sql string }{ // each statement is seen the first time that it is run
		{"CREATE FUNCTION heads()" + heads, "", "SELECT heads()"},
		{"", "CREATE VIEW beside AS SELECT public.heads()", "SELECT * FROM beside"},
		{"", "CREATE FUNCTION wrapper() RETURNS SETOF bigint LANGUAGE sql AS 'SELECT public.heads()'", "SELECT * FROM (SELECT 1) x, wrapper() w(n)"},
		{"CREATE OR REPLACE FUNCTION shops()" + heads, "", "SELECT shops()"},
		{"ALTER VIEW beside RENAME TO renamed", "", `SELECT * FROM public."renamed"`},
	} {
		want := captured() + 1
		if c.proxied != "" {
			exec0(t, conn, c.proxied)
			want++
		}
		if c.beside != "" {
			pgtest.Exec(t, s.direct, c.beside)
		}
		exec0(t, conn, c.sql)
		s.until(t, c.sql+" is captured", func() bool { return captured() >= want })
	}

	reload("privacy: {protected: [public.other]}")
	sent("SELECT count(*) FROM people", "unprotected")
	if !strings.Contains(s.log.String(), "new configuration") {
		t.Error("the auditor was not started again")
	}
}
