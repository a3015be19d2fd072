package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// The user chooses the verdict on deterministic answers; they never give an epsilon.
func TestDeterministicFlag(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	dsn := copies(t)
	audit := []string{"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--epsilon", "1", "--max-trials", "200", "--sql", "SELECT count(*) FROM people"}
	analyze := []string{"analyze", "--d0", file(t, "d0", strings.Repeat("50\n", 200)), "--d1", file(t, "d1", strings.Repeat("49\n", 200)), "--epsilon", "1"}
	for _, tc := range []struct {
		name    string
		args    []string
		verdict string
		code    int
		finding bool
	}{
		{"audit", audit, "violation", exitViolation, true},
		{"audit, text varied", append(audit[:len(audit):len(audit)], "--vary-text"), "violation", exitViolation, true},
		{"audit, warning", append(audit[:len(audit):len(audit)], "--deterministic", "warning"), "inconclusive", exitInconclusive, true},
		{"audit, ignore", append(audit[:len(audit):len(audit)], "--deterministic", "ignore"), "inconclusive", exitInconclusive, false},
		{"analyze", analyze, "violation", exitViolation, true},
		{"analyze, warning", append(analyze[:len(analyze):len(analyze)], "--deterministic", "warning"), "inconclusive", exitInconclusive, true},
		{"analyze, ignore", append(analyze[:len(analyze):len(analyze)], "--deterministic", "ignore"), "inconclusive", exitInconclusive, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := call(t, "", append(tc.args[:len(tc.args):len(tc.args)], "-o", "json")...)
			r.want(t, tc.code)
			report := r.object(t)
			if report["verdict"] != tc.verdict || (report["deterministic"] != nil) != tc.finding || strings.Contains(r.stdout, "deterministic or cached noise: the answers of each") != tc.finding {
				t.Errorf("verdict %v, finding %v; want %s", report["verdict"], report["deterministic"], tc.verdict)
			}
			if report["epsilon_lower"] != 0. || report["epsilon_estimate"] != nil || report["clopper_pearson"] != nil || report["detected_at"] != nil {
				t.Errorf("an epsilon in %s", r.stdout)
			}
			if confirmed := report["confirmation"] != nil; confirmed != (tc.args[0] == "audit" && tc.verdict == "violation") {
				t.Errorf("confirmation %v", report["confirmation"])
			}
		})
	}
	for _, args := range [][]string{audit, analyze} {
		call(t, "", append(args[:len(args):len(args)], "--deterministic", "maybe")...).want(t, exitFailure, "must be violation, warning or ignore")
	}
	call(t, "", audit...).want(t, exitViolation, "deterministic and differ between D0 and D1; this says nothing about an epsilon")
}

// Answers without rows, or with NULL alone, show nothing: the audit of a join with an empty table is vacuous, and says
// why; recorded ones are inconclusive.
func TestAuditOfNothing(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, "CREATE TABLE d0.visits (id int); CREATE TABLE d1.visits (id int)")
	for _, sql := range []string{
		"SELECT grp, noisy(count(*), 1) FROM people JOIN visits USING (id) GROUP BY grp", "SELECT noisy(sum(id), 1) FROM people JOIN visits USING (id)",
	} {
		r := call(t, "", "audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--epsilon", "1", "--max-trials", "200", "--sql", sql)
		r.want(t, exitInconclusive, "vacuous", "leaves out the person whom the neighbour lacks, and everyone else", "dpwatch doctor")
		if strings.Contains(r.stdout, "deterministic") {
			t.Errorf("%s: deterministic:\n%s", sql, r.stdout)
		}
	}
	empty := file(t, "results.jsonl", strings.Repeat(`{"columns":["n"],"rows":[]}`+"\n", 200))
	call(t, "", "analyze", "--d0", empty, "--d1", empty, "--epsilon", "1").want(t, exitInconclusive, "no answer on D0 or D1 has a row")
}

// dpwatch audit reports a violation only after fresh trials have confirmed it.
func TestAuditConfirms(t *testing.T) {
	t.Parallel()
	r := call(t, "", "audit", "--dsn", copies(t), "--d0", "d0", "--d1", "d1", "--epsilon", "0.2", "--sql", "SELECT noisy(count(*), 0.5) FROM people", "-o", "json")
	r.want(t, exitViolation)
	report := r.object(t)
	c, _ := report["confirmation"].(map[string]any)
	trials, _ := report["trials"].(map[string]any)
	if c["state"] != "confirmed" || c["pairs"].(float64)+c["after"].(float64) != trials["d0"] || !(report["epsilon_lower"].(float64) > .2) {
		t.Errorf("confirmation %v of %v trials", c, trials)
	}
}

// Lowest bits that show the dataset are a violation, a note beside the verdict, or nothing, as the user says.
func TestFloatingPointFlag(t *testing.T) {
	t.Parallel()
	var files []string
	for world, seed := range []uint64{7, 8} {
		var b strings.Builder
		for r := rand.New(rand.NewPCG(1, seed)); b.Len() < 10_000; {
			fmt.Fprintln(&b, float64(1-world)+math.Log((1-r.Float64())/(1-r.Float64())))
		}
		files = append(files, file(t, fmt.Sprint("naive", world), b.String()))
	}
	args := []string{"analyze", "--d0", files[0], "--d1", files[1], "--epsilon", "1", "--floating-point"}
	call(t, "", append(args[:len(args):len(args)], "violation")...).want(t, exitViolation, "floating point")
	call(t, "", append(args[:len(args):len(args)], "warning")...).want(t, exitDone, "the lowest bits of the numbers show the dataset")
	r := call(t, "", append(args[:len(args):len(args)], "ignore")...)
	if r.want(t, exitDone); strings.Contains(r.stdout, "lowest bits") {
		t.Error(r.stdout)
	}
	call(t, "", append(args[:len(args):len(args)], "maybe")...).want(t, exitFailure, "must be violation, warning or ignore")
}
