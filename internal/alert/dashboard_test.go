package alert_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const dashboard = "../../deploy/grafana/dashboard.json"

// panels returns the expressions of the dashboard's panels by their titles.
func panels(t *testing.T) map[string][]string {
	t.Helper()
	var d struct {
		Templating struct {
			List []struct{ Name string }
		}
		Panels []struct {
			Type, Title, Description string
			GridPos                  struct{ X, W int }
			Targets                  []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, dashboard)), &d); err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
	}
	if got := strings.Join(variables, " "); got != "datasource job instance" {
		t.Errorf("variables %s", got)
	}
	all := map[string][]string{}
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || all[p.Title] != nil || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q: needs a title of its own, a description, an expression and a place", p.Title)
		}
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
	}
	return all
}

var metricName = regexp.MustCompile(`dpwatch_[a-z_]+`)

// TestDashboard: the panels use metrics of the program with their labels, and every metric of the program is in a panel
// or a rule.
func TestDashboard(t *testing.T) {
	t.Parallel()
	names, used := metrics(t), map[string]bool{}
	for _, name := range metricName.FindAllString(read(t, rules), -1) {
		used[name] = true
	}
	labels := labelsOf(t)
	by := regexp.MustCompile(`by \(([a-z_, ]+)\)`)
	for title, exprs := range panels(t) {
		for _, expr := range exprs {
			for _, name := range metricName.FindAllString(expr, -1) {
				name = strings.TrimSuffix(name, "_bucket")
				if used[name] = true; !names[name] {
					t.Errorf("panel %q: no metric has the name %s", title, name)
				}
				for _, m := range by.FindAllStringSubmatch(expr, -1) {
					for label := range strings.SplitSeq(m[1], ", ") {
						if label != "le" && !strings.Contains(labels[name], `"`+label+`"`) {
							t.Errorf("panel %q: metric %s has no label %s", title, name, label)
						}
					}
				}
			}
			if !strings.Contains(expr, `{job=~"$job", instance=~"$instance"`) {
				t.Errorf("panel %q does not choose job and instance: %s", title, expr)
			}
		}
	}
	for name, line := range labels {
		if !used[name] {
			t.Errorf("metric %s is in no panel and no rule: %s", name, line)
		}
	}
}

// declared matches the line that declares a metric. Its labels may be on the next one.
var declared = regexp.MustCompile(`(?:(?:desc|counter|counters|gauge|count|counts|NewDesc)\(|Name:\s+)"(dpwatch_[a-z_]+)"`)

// labelsOf returns for each metric the source text that declares it, which has its labels.
func labelsOf(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	walk(t, func(source string) {
		lines := strings.Split(source, "\n")
		for i, line := range lines {
			if m := declared.FindStringSubmatch(line); m != nil {
				texts[m[1]] = strings.Join(lines[i:min(len(lines), i+2)], "\n")
			}
		}
	})
	if len(texts) < 60 {
		t.Fatalf("%d metrics", len(texts))
	}
	return texts
}

// TestDashboardExpressions lets promtool parse the expressions, as rules.
func TestDashboardExpressions(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool: deploy/prometheus/ensure.sh installs it")
	}
	type rule struct {
		Record string
		Expr   string
	}
	var all []rule
	grafana := strings.NewReplacer("$__rate_interval", "5m", "$job", "j", "$instance", "i")
	for _, exprs := range panels(t) {
		for _, expr := range exprs {
			all = append(all, rule{fmt.Sprintf("panel:%d", len(all)), grafana.Replace(expr)})
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": all}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
