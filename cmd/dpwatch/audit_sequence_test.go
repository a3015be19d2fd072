package main

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// Several --sql are a sequence: its queries may be right alone, and are judged together.
func TestAuditSequence(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, `CREATE FUNCTION same_noise(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS $$
		SELECT value + scale * coalesce(nullif(current_setting('app.noise', true), ''),
			set_config('app.noise', ln((1 - random()) / (1 - random()))::text, false))::float8 $$`)
	audit := func(flags []string, sql ...string) result {
		args := append([]string{"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "-o", "json", "--epsilon", "0.5"}, flags...)
		for _, text := range sql {
			args = append(args, "--sql", text)
		}
		return call(t, "", args...)
	}
	const total, others = "SELECT noise(count(*), 4) FROM people", "SELECT noise(count(*), 4) FROM people WHERE id < 50;"
	named := func(name string) []string {
		return []string{strings.Replace(total, "noise", name, 1), strings.Replace(others, "noise", name, 1)}
	}
	found := audit(nil, named("same_noise")...)
	found.want(t, exitViolation)
	report := found.object(t)
	checkContract(t, report)
	sql, _ := report["sql"].(map[string]any)
	if d1, _ := sql["d1"].(string); report["queries"] != 2.0 || strings.Count(d1, `d1`) != 2 || !strings.Contains(d1, ";\n") {
		t.Errorf("queries %v, sql %v; want the two queries", report["queries"], sql)
	}
	// Fresh noise keeps the claim: an alarm has probability 1e-6 at most.
	audit([]string{"--confidence", "0.999999", "--max-trials", "40"}, named("noisy")...).want(t, exitDone)

	for want, args := range map[string][]string{
		"at most 8 queries":       {strings.Repeat("SELECT 1\x00", 9)},
		"belongs to one query":    {"SELECT 1\x00SELECT 2", "--param", "1"},
		"query 2 of the sequence": {"SELECT count(*) FROM people\x00DELETE FROM people"},
		"is empty":                {"SELECT count(*) FROM people\x00;"},
	} {
		queries := strings.Split(strings.TrimSuffix(args[0], "\x00"), "\x00")
		audit(args[1:], queries...).want(t, exitFailure, want)
	}
}

// Without --epsilon, the claim of a sequence is composed of those of its queries.
func TestAuditSequenceClaim(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, `CREATE SCHEMA d2; CREATE TABLE d2.people AS TABLE d1.people;
		CREATE FUNCTION noisy_count(n bigint, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT noisy(n, 10 / epsilon)'`)
	path := auditConfig(t, dsn, "")
	const small, large = "SELECT noisy_count(count(*), 0.5) FROM people", "SELECT noisy_count(count(*), 0.75) FROM people WHERE grp = 1"
	for composition, want := range map[string]float64{"": 1.25, "sum": 1.25, "max": .75} {
		args := []string{"audit", "--config", path, "-o", "json", "--max-trials", "30", "--sql", small, "--sql", large}
		if composition != "" {
			args = append(args, "--composition", composition)
		}
		claimed, _ := call(t, "", args...).object(t)["claimed"].(map[string]any)
		if source, _ := claimed["source"].(string); claimed["epsilon"] != want || !strings.HasSuffix(source, "of the claims") {
			t.Errorf("composition %q: claimed %v, want epsilon %g", composition, claimed, want)
		}
	}
	call(t, "", "audit", "--config", path, "--sql", small, "--sql", "SELECT noisy(count(*), 1) FROM people").
		want(t, exitFailure, "query 2 of the sequence: the configuration has no claim for it")
}

// TestSequenceFinding: a sequence that a running dpwatch found is explained with the statements of all its queries, and
// reproduced with their parameters.
func TestSequenceFinding(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	s := startSidecar(t, "LEDGER SEQUENCES")
	conn := s.connect(t)
	for range 3 {
		exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 0.2000271) FROM people")
		exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 0.3000314) FROM people WHERE id > $1", -1717171717)
	}
	var id string
	s.until(t, "the sequence has a violation in the ledger", func() bool {
		for _, a := range s.audits(t) {
			if strings.HasPrefix(a.Summary, "2 queries together") && a.State == "decided" && a.Report.Verdict == "violation" {
				id = a.ID
			}
		}
		_, body := s.get(t, "/api/status") // after the verdict was seen: what is saved then contains it
		return id != "" && strings.Contains(body, `"unsaved_audits":0,"waiting":0,"lost":0`)
	})
	explained := call(t, "", "explain", id, "--reveal", "--config", s.config)
	explained.want(t, exitDone, "VIOLATION", "noisy(count(*), 0.2000271) FROM people", "then", "noisy(count(*), 0.3000314) FROM people WHERE id > $1", `\x99a609fb`)
	if plain := call(t, "", "explain", id, "--config", s.config).stdout; strings.Contains(plain, "000271") || strings.Contains(plain, "000314") || strings.Contains(plain, "99a609fb") {
		t.Errorf("literals or parameters without --reveal:\n%s", plain)
	}
	again := call(t, "", "audits", "reproduce", id, "--config", s.config, "-o", "json")
	again.want(t, exitViolation)
	if r := again.object(t); r["queries"] != 2.0 || r["confirmed"] != true {
		t.Errorf("queries %v, confirmed %v", r["queries"], r["confirmed"])
	}
}
