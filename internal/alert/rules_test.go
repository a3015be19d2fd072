package alert_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/finding"
)

const (
	rules = "../../deploy/prometheus/rules.yml"
	page  = "../../docs/alerts.md"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRules: every kind of alert has a rule with the name of its alerts in Alertmanager and a section in the runbook;
// every rule has a runbook and a unit test, and uses metrics of the program.
func TestRules(t *testing.T) {
	t.Parallel()
	text, runbook, tests := read(t, rules), read(t, page), read(t, strings.Replace(rules, "rules.yml", "rules_test.yml", 1))
	for _, kind := range finding.Kinds() {
		if !strings.Contains(text, "- alert: "+alert.AlertmanagerName(kind)+"\n") {
			t.Errorf("no rule for kind %s", kind)
		}
		_, rule, _ := strings.Cut(text, "- alert: "+alert.AlertmanagerName(kind)+"\n")
		rule, _, _ = strings.Cut(rule, "- alert: ")
		metric := strings.Contains(rule, `dpwatch_alerts_firing{kind="`+string(kind)+`"}`) // it has the severity as a label
		if metric == strings.Contains(rule, "labels:") || !metric && !strings.Contains(rule, "severity: "+string(kind.Severity())+", kind: "+string(kind)) {
			t.Errorf("the rule for kind %s has another severity than its alerts: %s", kind, rule)
		}
		if !strings.Contains(runbook, "\n## "+string(kind)+"\n") {
			t.Errorf("no section for kind %s", kind)
		}
	}
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^##? (.*)$`).FindAllStringSubmatch(runbook, -1) {
		sections[strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")] = true
	}
	parts := strings.Split(text, "- alert: ")[1:]
	for _, rule := range parts {
		name, _, _ := strings.Cut(rule, "\n")
		_, anchor, _ := strings.Cut(rule, "runbook: docs/alerts.md#")
		if !sections[strings.TrimSpace(anchor)] {
			t.Errorf("rule %s: no section %q in docs/alerts.md", name, strings.TrimSpace(anchor))
		}
		if !strings.Contains(tests, "alertname: "+name+"\n") || !strings.Contains(runbook, "`"+name+"`") {
			t.Errorf("rule %s has no unit test, or docs/alerts.md does not name it", name)
		}
	}
	names := metrics(t)
	for _, metric := range regexp.MustCompile(`dpwatch_[a-z_]+`).FindAllString(text+runbook, -1) {
		if !names[metric] {
			t.Errorf("%s is used, but no metric has that name", metric)
		}
	}
}

// metrics returns the names of metrics in the source.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	namespace := regexp.MustCompile(`Namespace: "(dpwatch_[a-z]+)"`)
	quoted := regexp.MustCompile(`"(dpwatch_[a-z_]+)"`)
	walk(t, func(source string) {
		for _, m := range quoted.FindAllStringSubmatch(source, -1) {
			names[m[1]] = true
		}
		for _, m := range namespace.FindAllStringSubmatch(source, -1) { // of the collector of a process
			names[m[1]+"_process_resident_memory_bytes"] = true
		}
	})
	return names
}

// walk gives every source file that may declare metrics to see.
func walk(t *testing.T, see func(source string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		see(read(t, path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPromtool runs the unit tests of the rules.
func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool: deploy/prometheus/ensure.sh installs it")
	}
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = filepath.Dir(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
