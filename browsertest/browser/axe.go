package browser

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/clienttest"
)

// NeedAxe skips the test if there is no axe-core, which checks pages for what keeps people from using them.
func NeedAxe(t *testing.T) {
	t.Helper()
	_ = clienttest.Node(t)
}

// Axe returns what is wrong with the page for people who use a keyboard, a screen reader or high contrast, by axe-core:
// WCAG 2.2 A and AA and its best practices. The script runs in the page as a debugger's does, so that the page's
// content security policy stays as it is.
func (b *Tab) Axe() (violations []string) {
	b.t.Helper()
	source, err := os.ReadFile(filepath.Join(clienttest.Node(b.t), "axe-core", "axe.min.js"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.Eval(string(source)+"; true", nil)
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
