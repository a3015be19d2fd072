package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/sarif"
	"github.com/dpwatch/dpwatch/internal/sarif/sariftest"
)

// sarifOf returns the run of a SARIF file that keeps the schema of the standard.
func sarifOf(t *testing.T, text string) sarif.Run {
	t.Helper()
	var log sarif.Log
	if err := sariftest.Validate([]byte(text)); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := json.Unmarshal([]byte(text), &log); err != nil || len(log.Runs) != 1 {
		t.Fatal(err, text)
	}
	return log.Runs[0]
}

// TestAuditSARIF: the file keeps the schema of the standard. A violation is one result, with the same fingerprint in
// the next run and without values of rows; no evidence is none, and the exit codes are those of every format. That the
// honest query is called a violation has a probability of at most 1e-6.
func TestAuditSARIF(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	audit := func(code int, args ...string) (sarif.Run, string) {
		t.Helper()
		r := call(t, "", append([]string{"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "-o", "sarif"}, args...)...)
		r.want(t, code)
		return sarifOf(t, r.stdout), r.stdout
	}
	query := file(t, "leaks.sql", "SELECT id, noisy(count(*), 0.51) AS n FROM people WHERE id > 47 GROUP BY id ORDER BY id")
	leak, text := audit(exitViolation, "--file", query, "--epsilon", "0.2")
	if len(leak.Results) != 1 || leak.Results[0].Level != sarif.Error || leak.Results[0].Locations[0].Physical.Artifact.URI != "file://"+query || !strings.Contains(leak.Results[0].Message.Text, "VIOLATION: this query leaks more than the claimed epsilon 0.2") {
		t.Errorf("%s", text)
	}
	for _, value := range []string{"id=50", "id = 50", "0.51", "> 47"} {
		if strings.Contains(text, value) {
			t.Errorf("%q is in %s", value, text)
		}
	}
	again, _ := audit(exitViolation, "--file", query, "--epsilon", "0.2", "--measure", "50")
	if a, b := leak.Results[0].Fingerprints["dpwatch/v1"], again.Results[0].Fingerprints["dpwatch/v1"]; a == "" || a != b {
		t.Errorf("fingerprints %q and %q of one query", a, b)
	}
	if honest, text := audit(exitDone, "--sql", "SELECT noisy(count(*), 2) FROM people", "--epsilon", "1", "--max-trials", "200", "--confidence", "0.999999"); len(honest.Results) != 0 {
		t.Errorf("no evidence has results: %s", text)
	}
	few, text := audit(exitInconclusive, "--sql", "SELECT noisy(count(*), 1) FROM people", "--epsilon", "10", "--max-trials", "100")
	if len(few.Results) != 1 || few.Results[0].Level != sarif.Note || few.Results[0].RuleID != "inconclusive" || few.Results[0].Locations[0].Physical != nil {
		t.Errorf("%s", text)
	}
	several, text := audit(exitViolation, "--sql", "SELECT count(*) FROM people", "--sql", "SELECT max(id) FROM people", "--epsilon", "1")
	if len(several.Results) != 1 || !strings.Contains(text, "; then ") || several.Results[0].Fingerprints["dpwatch/v1"] == "" {
		t.Errorf("%s", text)
	}
}

// TestReportSARIF: the file of all audits in a ledger says why one has no conclusion, as explain does.
func TestReportSARIF(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "LEDGER")
	exec0(t, s.connect(t), "/*dp_epsilon='0.5'*/ SELECT noisy(id, 4) FROM people WHERE id = 4711")
	s.until(t, "the verdict in the ledger", func() bool {
		all := s.audits(t)
		_, body := s.get(t, "/api/status")
		return len(all) == 1 && all[0].State == "decided" && strings.Contains(body, `"unsaved_audits":0,"waiting":0,"lost":0`)
	})
	dir := filepath.Join(t.TempDir(), "ci")
	call(t, "", "report", "--config", s.config, "--all", "-o", "sarif", "--dir", dir).want(t, exitDone)
	text, err := os.ReadFile(filepath.Join(dir, "report.sarif"))
	if err != nil {
		t.Fatal(err)
	}
	const why = "Inconclusive. Reason: vacuous: without noise the query reads the same on D0"
	run := sarifOf(t, string(text))
	if len(run.Results) != 1 || run.Results[0].Level != sarif.Note || !strings.HasPrefix(run.Results[0].Message.Text, why) || strings.Contains(string(text), "4711") {
		t.Errorf("%s", text)
	}
	call(t, "", "explain", s.audits(t)[0].ID, "--config", s.config).want(t, exitDone, why)
}
