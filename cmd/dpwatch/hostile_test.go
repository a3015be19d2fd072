package main

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestHostileStatements sends statements that the server completes or rejects, and that could harm a parser. Every
// completed statement is counted under a reason or audited, no other is captured, and the auditor does not end.
func TestHostileStatements(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "", "max_statement: 64KiB")
	pid := s.auditor(t, 0)
	simple := func(conn *pgx.Conn, sql string) error {
		_, err := conn.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	repeat := strings.Repeat
	skipped := func(reason string) uint64 { return s.status(t).Audit.Skipped[reason] }
	for name, c := range map[string]struct {
		sql   string
		count func() uint64 // increases because of the statement
	}{
		"a megabyte": {
			"SELECT count(*) FROM people /*" + repeat("x", 1<<20) + "*/",
			func() uint64 {
				return uint64(s.metric(t, `dpwatch_statements_skipped_total{reason="too_long"}`) + s.metric(t, `dpwatch_statements_skipped_total{reason="over_budget"}`))
			},
		},
		"too many words":  {"SELECT count(*) FROM people WHERE id IN (1" + repeat(",1", 15_000) + ")", func() uint64 { return skipped("too_large") }},
		"nested comments": {"SELECT count(*) FROM people WHERE id <> 1 " + repeat("/*", 5_000) + repeat("*/", 5_000), func() uint64 { return skipped("too_deep") }},
		"signs":           {"SELECT count(*) FROM people WHERE id <> " + repeat("+", 2_000) + "1", func() uint64 { return skipped("too_deep") }},
		"deep sub-selects": {
			repeat("SELECT * FROM (", 400) + "SELECT pg_sleep(0) FROM people" + repeat(") x", 400),
			func() uint64 { return skipped("side_effects") },
		},
		"invalid UTF-8":  {"SELECT count(*) FROM people WHERE '\xff' = ''", nil},
		"never closed":   {"SELECT count(*) FROM people WHERE '", nil},
		"a missing name": {"SELECT nothing FROM people", nil},
	} {
		conn := s.connect(t) // unseen text makes its session's settings uncertain
		if c.count == nil {  // the server rejects it
			before := s.status(t).Audit.Captured
			if err := simple(conn, c.sql); err == nil {
				t.Errorf("%s: the server took it", name)
			}
			if err := simple(conn, "SELECT pg_backend_pid() FROM people LIMIT 1"); err != nil {
				t.Fatal(err)
			}
			s.until(t, "the next statement is heard", func() bool { return s.status(t).Audit.Captured > before })
			if got := s.status(t).Audit.Captured; got != before+1 {
				t.Errorf("%s: %d statements captured, want the one that completed", name, got-before)
			}
			continue
		}
		before := c.count()
		if err := simple(conn, c.sql); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s.until(t, name+" is counted", func() bool { return c.count() == before+1 })
	}
	// Thousands of bound parameters.
	args := make([]any, 5_000)
	marks := make([]string, len(args))
	for i := range args {
		args[i], marks[i] = i, "$"+itoa(i+1)
	}
	before := s.status(t).Audit.Captured
	if _, err := s.connect(t).Exec(t.Context(), "SELECT count(*) FROM people WHERE id IN ("+strings.Join(marks, ",")+")", args...); err != nil {
		t.Fatal(err)
	}
	s.until(t, "parameters by thousands are heard", func() bool { return s.status(t).Audit.Captured == before+1 })
	s.until(t, "and audited", func() bool {
		for _, a := range s.status(t).Audit.Audits {
			if strings.Contains(a.Summary, "$1") {
				return true
			}
		}
		return false
	})
	if now := auditorOf(t, s.Process.Pid); now != pid {
		t.Errorf("the auditor is process %d, was %d", now, pid)
	}
}
