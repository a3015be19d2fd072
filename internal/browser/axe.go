package browser

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// axeVersion is the version of axe-core, which checks pages for what keeps people from using them.
const axeVersion = "4.14.1"

var axeSource = sync.OnceValues(func() (string, string) {
	dirs := filepath.SplitList(os.Getenv("NODE_PATH"))
	if os.Getenv("DPWATCH_TEST_NPM") == "1" {
		prefix := filepath.Join(os.TempDir(), "dpwatch-test-axe-"+axeVersion)
		dir := filepath.Join(prefix, "node_modules")
		if _, err := os.Stat(filepath.Join(dir, "axe-core")); err != nil {
			out, err := exec.Command("npm", "install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix", prefix, "axe-core@"+axeVersion).CombinedOutput()
			if err != nil {
				return "", "npm could not fetch axe-core: " + string(out)
			}
		}
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		if text, err := os.ReadFile(filepath.Join(dir, "axe-core", "axe.min.js")); err == nil {
			return string(text), ""
		}
	}
	return "", "DPWATCH_TEST_NPM=1 lets npm fetch axe-core, NODE_PATH names where it is"
})

// NeedAxe skips the test if there is no axe-core.
func NeedAxe(t *testing.T) {
	t.Helper()
	if _, why := axeSource(); why != "" {
		t.Skip("SKIPPED: " + why)
	}
}

// Axe returns what is wrong with the page for people who use a keyboard, a screen reader or high contrast, by axe-core: WCAG 2.2 A and AA and its best
// practices. The script runs in the page as a debugger's does, so that the page's content security policy stays as it is.
func (b *Tab) Axe() (violations []string) {
	b.t.Helper()
	source, why := axeSource()
	if why != "" {
		b.t.Fatal(why)
	}
	b.Eval(source+"; true", nil)
	var result string
	b.Eval(`axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations.map((v) => ({id: v.id, help: v.help, nodes: v.nodes.map((n) => n.target.join(' ') + ': ' + n.html.slice(0, 120))}))))`, &result)
	var all []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(result), &all); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range all {
		violations = append(violations, v.ID+": "+v.Help+": "+strings.Join(v.Nodes[:min(3, len(v.Nodes))], "; "))
	}
	return violations
}
