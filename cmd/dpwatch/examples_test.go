package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// expectedCode is the comment on a command in a README that gives its exit code; every other command must succeed.
var expectedCode = regexp.MustCompile(`(?m)^(.*) # exit code (\d)$`)

// readmeScript returns the commands of a page in order, those in its blocks ```sh.
func readmeScript(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	for _, part := range strings.Split(string(text), "\n```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```\n")
		script += block
	}
	return expectedCode.ReplaceAllString(script, `code=0; $1 || code=$$?; [ $$code = $2 ] || { echo "exit code $$code, want $2"; exit 1; }`)
}

// shell runs a script in a directory, with dpwatch and the programs of psql's directory in the PATH. The first command
// that fails ends it.
func shell(t *testing.T, dir, psql, script string, environ ...string) {
	t.Helper()
	bin := t.TempDir()
	wrapper := fmt.Sprintf("#!/bin/sh\nDPWATCH_TEST_AS_PROGRAM=1 exec '%s' \"$@\"\n", os.Args[0])
	if err := os.WriteFile(filepath.Join(bin, "dpwatch"), []byte(wrapper), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	path := bin + ":" + filepath.Dir(psql)
	if strings.Contains(script, "\ngateway ") {
		gateways(t)
		path += ":" + gateway.directory
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -eu; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"+script)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH")), environ...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestExamples runs every command of the examples' READMEs: the honest queries have no violation, the broken ones have
// one. A false alarm has a probability of at most 1e-6 for each query, the 1 - audit.confidence of the examples. The
// violations are so large that a few hundred of the 10,000 pairs of trials show them.
func TestExamples(t *testing.T) {
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("psql is not installed; the READMEs of the examples use it")
	}
	readmes, err := filepath.Glob("../../examples/*/dpwatch.yaml")
	if err != nil || len(readmes) < 4 {
		t.Fatalf("%d examples, %v", len(readmes), err)
	}
	for _, path := range readmes {
		name := filepath.Base(filepath.Dir(path))
		if name != "anon_functions" && !longtest.Enabled() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runExample(t, filepath.Dir(path), psql)
		})
	}
}

// runExample runs the commands of one README in a copy of the directory.
func runExample(t *testing.T, source, psql string) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	// A control on a twin blocks a right violation with a probability of up to 1/20.
	config := filepath.Join(dir, "dpwatch.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	untwinned := strings.NewReplacer("shadow: {dsn:", "shadow: {twin: none, dsn:", "shadow:\n  dsn:", "shadow:\n  twin: none\n  dsn:").Replace(string(text))
	if untwinned == string(text) {
		t.Fatalf("%s has no shadow.dsn", config)
	}
	if err := os.WriteFile(config, []byte(untwinned), 0o600); err != nil {
		t.Fatal(err)
	}
	readme := filepath.Join(dir, "README.md")
	text, err = os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(expectedCode.FindAll(text, -1)); n < 2 {
		t.Fatalf("%s has %d commands with an exit code; want an honest and a broken query", readme, n)
	}
	shell(t, dir, psql, readmeScript(t, readme), "DATABASE="+pgtest.Database(t))
}
