package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/app/reports"
	"github.com/dpwatch/dpwatch/internal/sarif"
)

// checkReport writes reports of the two audits of TestFinding, bad and good, and verifies them from another directory.
// None of them has a literal or a value without --reveal. The texts that must not be in them are none that a hash in
// hexadecimal digits can have.
func (s *sidecar) checkReport(t *testing.T, bad, good string, secrets ...string) (signed string) {
	t.Helper()
	dir := t.TempDir()
	key, other := filepath.Join(dir, "report.key"), filepath.Join(dir, "other.key")
	for _, path := range []string{key, other} {
		call(t, "", "report", "--new-key", path).want(t, exitDone, path+".pub")
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatal(info, err)
		}
	}
	call(t, "", "report", "--new-key", key).want(t, exitFailure, "exists and is not replaced")
	signed = filepath.Join(dir, "one")
	write := func(code int, into string, args ...string) result {
		t.Helper()
		r := call(t, "", append([]string{"report", "--config", s.config, "--dir", filepath.Join(dir, into), "--key", key}, args...)...)
		r.want(t, code)
		return r
	}
	read := func(into, name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, into, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if into != "revealed" && bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s/%s has %q", into, name, secret)
			}
		}
		return string(text)
	}
	write(exitDone, "one", bad[:6], "-o", "html,json")
	for _, want := range []string{
		"How bad?", "VIOLATION: this query leaks more than the claimed epsilon 0.5", "What gives it away?", "What the audit does not prove", "How was this found?", "audit.error_rate: family",
		"Certified lower bound", "Evidence against the claim", `<figure class="chart">`, "No evidence of a violation is not a proof of privacy",
	} {
		if !strings.Contains(read("one", "report.html"), want) {
			t.Errorf("report.html has no %q", want)
		}
	}
	if html := read("one", "report.html"); strings.Contains(html, "http://") || strings.Contains(html, "https://") || strings.Contains(html, "<script") {
		t.Error("report.html loads something")
	}
	write(exitFailure, "printed", bad, "-o", "html,pdf").want(t, exitFailure, "open report.html in a browser and print it")
	var contents reports.Report
	var one struct {
		Findings []struct{ Key, Verdict string }
	}
	if err := json.Unmarshal([]byte(read("one", "report.json")), &one); err != nil || len(one.Findings) != 1 || one.Findings[0].Key[:12] != bad || one.Findings[0].Verdict != "violation" {
		t.Errorf("report.json: %v, %+v", err, one)
	}
	var m struct {
		Audits []struct {
			ID, Verdict string
			Trials      int
			Seeds       []uint64
			Evidence    string `json:"evidence_sha256"`
			DataEpoch   string `json:"data_epoch"`
		}
		PostgreSQL map[string]string `json:"postgresql_versions"`
		Files      []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(read("one", "manifest.json")), &m); err != nil || len(m.Audits) != 1 || m.Audits[0].ID != bad || m.Audits[0].Trials == 0 || len(m.Audits[0].Evidence) != 64 || len(m.Audits[0].Seeds) != 1 || len(m.PostgreSQL) != 2 || len(m.Files) != 2 {
		t.Errorf("manifest.json: %v, %+v", err, m)
	}
	write(exitFailure, "one", bad).want(t, exitFailure, "exists and is not replaced")

	write(exitDone, "sarif", "--all", "-o", "sarif", "--reveal")
	if run := sarifOf(t, read("sarif", "report.sarif")); len(run.Results) != 1 || run.Results[0].Level != sarif.Error || run.Results[0].Locations[0].Logical[0].Name != bad || run.Results[0].Locations[0].Physical.Artifact.URI != "file://"+s.config {
		t.Errorf("report.sarif: %+v", run)
	}

	verify := func(code int, text, into string, args ...string) {
		t.Helper()
		call(t, "", append([]string{"report", "--verify", filepath.Join(dir, into)}, args...)...).want(t, code, text)
	}
	verify(exitDone, "2 files are as they were signed", "one", "--public-key", key+".pub")
	verify(exitDone, "who signed it is not known", "one/manifest.json")
	verify(exitFailure, "signed with another key", "one", "--public-key", other+".pub")
	verify(exitFailure, "no such file", "none")

	write(exitDone, "revealed", bad, "--reveal")
	if html := read("revealed", "report.html"); !strings.Contains(html, "noisy(count(*), 0.2) FROM people WHERE id &gt; $1") || !strings.Contains(html, "The answers with and without the person") || !strings.Contains(html, "CONFIDENTIAL") {
		t.Error("the revealed report has no statement, no histogram or no warning")
	}
	write(exitDone, "all", "--all", "-o", "html,json")
	if html := read("all", "report.html"); !strings.Contains(html, good) || !strings.Contains(html, "Of 2 audited or known queries, 1 leak more than they claim; 0 of these are accepted.") {
		t.Error("the report of all audits lacks the honest one")
	}
	write(exitDone, "period", "--period", "30d", "-o", "html,json")
	for _, want := range []string{"100.0 % of the statements that may be DP queries are audited", "What was found in the period?", "How much privacy was used up?", "EXCEEDED"} {
		if !strings.Contains(read("period", "report.html"), want) {
			t.Errorf("the report of a period has no %q", want)
		}
	}
	write(exitDone, "earlier", "--since", "2020-01-01", "--until", "2020-02-01", "-o", "json")
	if err := json.Unmarshal([]byte(read("earlier", "report.json")), &contents); err != nil || len(contents.Audits) != 0 || len(contents.Findings) != 0 {
		t.Errorf("a period before all audits: %v, %+v", err, contents.Audits)
	}
	for _, args := range [][]string{{}, {bad, "--all"}, {"--all", "--period", "1d"}, {"--until", "2020-01-01"}, {"--since", "2020-01-02", "--until", "2020-01-01"}, {"--period", "x"}, {"--since", "x"}, {"--period", "1d", "--since", "2020-01-01"}, {bad, "-o", "doc"}, {"dead"}} {
		write(exitFailure, "wrong", args...)
	}
	call(t, "", "report", bad, "--config", s.config, "--dir", filepath.Join(dir, "unsigned")).want(t, exitDone, "the manifest is not signed")
	verify(exitFailure, "is not signed", "unsigned")
	return signed
}
