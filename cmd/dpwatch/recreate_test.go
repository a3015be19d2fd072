package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// storedNoise returns a configuration whose source has noise that is drawn once for each copy: counts with discrete
// Laplace noise and answers with randomised response in materialised views, both exactly as epsilon allows, and counts
// with noise from a default that is nearly as small. A unit is replaced: its bit moves from 0 to 1.
func storedNoise(t *testing.T, epsilon float64) (path, source, shadow string) {
	t.Helper()
	source, shadow = pgtest.Database(t), pgtest.Database(t)
	const laplace = "floor(-ln(1 - random()) / %[1]g) - floor(-ln(1 - random()) / %[1]g)"
	pgtest.Exec(t, source, fmt.Sprintf(`CREATE TABLE people (id int PRIMARY KEY, bit int NOT NULL, noise float8 DEFAULT `+laplace+`);
		INSERT INTO people SELECT i, CASE WHEN i > 1 THEN i %% 2 ELSE 0 END FROM generate_series(1, 9) i;
		CREATE MATERIALIZED VIEW counts AS SELECT sum(bit) + `+laplace+` AS n FROM people;
		CREATE MATERIALIZED VIEW answers AS SELECT id, CASE WHEN random() < 1 / (1 + exp(-%[1]g)) THEN bit ELSE 1 - bit END AS answer FROM people`, epsilon))
	return file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q}
privacy: {protected: [public.people, public.counts, public.answers], unit: {table: public.people, key: id}}
claims: {default: {epsilon: 1}}
neighbours: {source: %q, relation: replace, measures: [{column: public.people.bit, low: 0, high: 1}],
  choose: [{rule: largest, columns: public.people.id}, {rule: smallest, columns: public.people.id}]}
`, upstreamOf(t, source), shadow, source)), source, shadow
}

const (
	storedCounts  = "SELECT n FROM counts"
	storedAnswers = "SELECT answer FROM answers WHERE id = 1"
)

// TestAuditRecreate: noise that is drawn once for each copy is audited with copies that are made anew. Ten times the
// noise of the claim is no violation: each pair of trials has a likelihood ratio of at most e^0.1 in its favour, where the
// claim needs e. A tenth of it is one in any 300 pairs. Both fail with a probability far below 1e-6. Noise that is not
// drawn anew would make the answers constant, and the verdict another one.
func TestAuditRecreate(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name, sql string
		epsilon   float64
		then      []string
		code      int
	}{
		{"counts with noise", storedCounts, 0.1, nil, exitDone},
		{"a default with noise", "SELECT sum(bit) + max(noise) FROM people WHERE id = 1", 0.1, nil, exitDone},
		{"counts without", storedCounts, 10, nil, exitViolation},
		{"answers in a sequence", "SELECT count(*) FROM answers", 10, []string{storedAnswers}, exitViolation},
	} {
		if longtest.Other(i, 2) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path, _, shadow := storedNoise(t, c.epsilon)
			trials := map[int]string{exitDone: "40", exitViolation: "300"}[c.code]
			args := []string{"audit", "--config", path, "--recreate", "--epsilon", "1", "--d1", "d1_2", "--max-trials", trials, "--sql", c.sql}
			for _, sql := range c.then {
				args = append(args, "--sql", sql)
			}
			r := call(t, "", append(args, "-o", "json")...)
			r.want(t, c.code)
			report := r.object(t)
			checkContract(t, report)
			reads, _ := report["reads"].(map[string]any)
			if tables := fmt.Sprint(reads["tables"]); report["recreated"] != true || report["control"] != nil || report["neighbour"] != "d1_2" || !strings.Contains(tables, "d1_2:[dpwatch_recreate_") {
				t.Errorf("recreated %v, control %v, neighbour %v, reads %s", report["recreated"], report["control"], report["neighbour"], tables)
			}
			pgtest.Exec(t, shadow, "DO $$ BEGIN IF EXISTS (SELECT FROM pg_namespace WHERE nspname ~ '^dpwatch') THEN RAISE 'copies are left'; END IF; END $$")
		})
	}
}

// TestAuditRecreateAtTheClaim: noise that is drawn once for each copy and keeps its claim exactly is no violation (with a
// probability of at most 1e-6), and half of it is one: after about 400 pairs, in 2,000 with a probability far above
// 1 - 1e-6.
func TestAuditRecreateAtTheClaim(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for _, sql := range []string{storedCounts, storedAnswers} {
		for epsilon, code := range map[float64]int{1: exitDone, 2: exitViolation} {
			t.Run(fmt.Sprint(sql, epsilon), func(t *testing.T) {
				t.Parallel()
				path, _, _ := storedNoise(t, epsilon)
				trials := map[int]string{exitDone: "300", exitViolation: "2000"}[code]
				r := call(t, "", "audit", "--config", path, "--recreate", "--d1", "d1_2", "--confidence", "0.999999", "--max-trials", trials, "--sql", sql)
				r.want(t, code, "made anew for each pair of trials")
			})
		}
	}
}

// TestAuditRecreateInterrupted: an interrupted audit removes its copies, also if a second signal follows.
func TestAuditRecreateInterrupted(t *testing.T) {
	t.Parallel()
	path, _, shadow := storedNoise(t, 0.1)
	call(t, "", "neighbours", "create", "--config", path).want(t, exitDone)
	call(t, "", "doctor", "--config", path).want(t, exitDone, "columns with defaults that volatile functions compute: public.people.noise (random): each copy computes them anew", "public.answers (random), public.counts (random)")
	conn := pgtest.Connect(t, shadow)
	cmd := program(t.Context(), "audit", "--config", path, "--recreate", "--max-trials", "1000000", "--sql", storedCounts)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitSQL(t, conn, "pairs of copies", "count(*) > 4 FROM pg_namespace WHERE nspname ~ '^dpwatch_recreate_'")
	if code := interrupted(t, cmd); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	awaitSQL(t, conn, "no copies are left but those of the set", "string_agg(nspname, ' ' ORDER BY nspname) = 'd0 d0_guard d0_twin d1_1 d1_2 dpwatch' FROM pg_namespace WHERE nspname ~ '^d'")
	call(t, "", "neighbours", "verify", "--config", path).want(t, exitDone)
}

// TestAuditRecreateRefused: what cannot be recreated is an error that says why.
func TestAuditRecreateRefused(t *testing.T) {
	t.Parallel()
	path, _, shadow := storedNoise(t, 1)
	for want, args := range map[string][]string{
		"--recreate needs --config with neighbours.source": {"--dsn", shadow, "--d0", "d0", "--d1", "d1", "--epsilon", "1"},
		"leave out --d0":                   {"--config", path, "--d0", "d0"},
		"leave out --twin":                 {"--config", path, "--twin", "d0"},
		"leave out --timing or --recreate": {"--config", path, "--timing", "10"},
		"one engine for all copies":        {"--config", path, "--engine", "a", "--engine", "b"},
		"--d1 x is none of shadow.d1":      {"--config", path, "--d1", "x"},
		"--recreate audits one neighbour":  {"--config", path, "--d1", "d1_1,d1_2"},
		"--dry-run makes no copies":        {"--config", path, "--dry-run"},
	} {
		call(t, "", slices.Concat([]string{"audit", "--recreate", "--sql", storedCounts}, args)...).want(t, exitFailure, want)
	}
}

// TestAuditRenews: a violation on copies that the configuration describes is confirmed on copies that are made anew, of
// which nothing is left, and on the first ones, with a warning, if the source has changed so much that its units would be
// others. The answers have no noise, so that every audit finds it, and no control blocks it by chance.
func TestAuditRenews(t *testing.T) {
	t.Parallel()
	path, source, shadow := storedNoise(t, 10)
	call(t, "", "neighbours", "create", "--config", path).want(t, exitDone)
	audit := func(args ...string) result {
		t.Helper()
		r := call(t, "", append([]string{"audit", "--config", path, "--sql", "SELECT sum(bit) FROM people"}, args...)...)
		r.want(t, exitViolation)
		pgtest.Exec(t, shadow, "DO $$ BEGIN IF EXISTS (SELECT FROM pg_namespace WHERE nspname ~ '^dpwatch_') THEN RAISE 'copies are left'; END IF; END $$")
		return r
	}
	report := audit("-o", "json").object(t)
	checkContract(t, report)
	control, _ := report["control"].(map[string]any)
	if control["recreated"] != true || control["state"] != "passed" {
		t.Errorf("control %v", control)
	}
	audit("-o", "issue").want(t, exitViolation, "## What is seen", "D1 has other values in these rows", `FROM "d1_`, "|o", "Found with dpwatch")
	call(t, "", "audit", "--config", path, "--sql", "SELECT 1", "-o", "issue", "--values=false").want(t, exitFailure, "give only one of the two")
	r := audit("--d1", "d1_2")
	r.want(t, exitViolation, "on new copies of D0 and its twin are alike", "made anew between the first trials and their confirmation")
	pgtest.Exec(t, source, "INSERT INTO people VALUES (10, 1)") // d1_1 lacks the unit with the greatest key
	r = audit()
	r.want(t, exitViolation, "not made anew")
	if !strings.Contains(r.stderr, "the unit of d1_1 would be another one: run `dpwatch neighbours refresh`") {
		t.Errorf("warning %q", r.stderr)
	}
	call(t, "", "neighbours", "verify", "--config", path).want(t, exitDone)
}

// interrupted interrupts a command twice and returns its exit code.
func interrupted(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}
