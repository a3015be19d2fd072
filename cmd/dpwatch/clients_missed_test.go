package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// missed are the sessions of docs/index.md whose DP statements are not recorded, with the reason that is counted.
var missed = []struct {
	reason     string
	statements []string
}{
	{"settings_uncertain", []string{"SET dp.epsilon = '0.5'", "SELECT set_config('dp.epsilon', (0.25 * 2)::text, false)", "SELECT noisy(count(*), 4) FROM people"}},
	{"bad_claim", []string{"SELECT dp_count(count(*), random()) FROM people"}},
	{"not_select", []string{"DO $$ BEGIN PERFORM dp_count(count(*), 0.5) FROM people; END $$"}},
	{"no_copy", []string{"SELECT headcount()"}},
	{"no_copy", []string{"SELECT * FROM counted"}},
	{"side_effects", []string{"WITH w AS (INSERT INTO notes SELECT 'x' RETURNING 1) SELECT dp_count(count(*), 0.5) FROM people"}},
	{"temp_table", []string{"CREATE TEMP TABLE people (id int)", "SELECT dp_count(count(*), 0.5) FROM people"}},
	{"temp_table", []string{"CREATE TEMP TABLE mine (id int)", "INSERT INTO mine SELECT id FROM people", "SELECT dp_count(count(*), 0.5) FROM mine"}},
	{"too_long", []string{"SELECT dp_count(count(*), 0.5) FROM people /*" + strings.Repeat("x", 300<<10) + "*/"}},
}

// TestClientsMissed: what docs/index.md says of statements that are not recorded is so, and each is counted.
func TestClientsMissed(t *testing.T) {
	t.Parallel()
	s := startClientSidecar(t)
	page, err := os.ReadFile("../../docs/index.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{}
	for i, m := range missed {
		cfg, err := pgx.ParseConfig(s.dsn())
		if err != nil {
			t.Fatal(err)
		}
		cfg.RuntimeParams["application_name"] = fmt.Sprintf("missed %d", i)
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range m.statements {
			if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
		if err := conn.Close(context.Background()); err != nil {
			t.Error(err)
		}
		want[m.reason]++
	}
	s.settle(t)
	skipped := s.metrics(t, "dpwatch_queries_skipped_total")
	skipped["too_long"] = s.metrics(t, "dpwatch_statements_skipped_total")["too_long"] // by the relay
	for reason, n := range want {
		if skipped[reason] < n || !strings.Contains(string(page), "`"+reason+"`") {
			t.Errorf("%v statements are counted as %s, want at least %v, and a row in docs/index.md", skipped[reason], reason, n)
		}
	}
	rows, err := pgtest.Connect(t, s.direct).Query(t.Context(), "SELECT application || ' ' || summary || ' ' || coalesce(epsilon::text, '-') FROM dpwatch_ledger.queries q JOIN dpwatch_ledger.query_users u ON u.query = q.id WHERE epsilon IS DISTINCT FROM $1", lastEpsilon)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(recorded) > 0 {
		t.Errorf("recorded: %q, %v", recorded, err)
	}
}
