package config

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReloadable: the table in docs/admin.md names the keys that a reload changes, and their exceptions; both lists
// have only keys that exist.
func TestReloadable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/admin.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, key := range Keys() {
		keys[key] = true
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			rows[strings.TrimSpace(cells[2])] += cells[1]
		}
	}
	var listed []string
	for i, part := range strings.Split(rows["on reload; of an engine in `engines`, too"], "`") {
		if i%2 == 1 {
			listed = append(listed, part)
		}
	}
	if diff := cmp.Diff(reloadable, listed); diff != "" {
		t.Errorf("docs/admin.md (-code +page):\n%s", diff)
	}
	for _, key := range append(reloadable, fixed...) {
		if !keys[key] {
			t.Errorf("no key %s", key)
		}
	}
	for _, key := range fixed {
		if !strings.Contains(rows["after a restart"], "`"+key+"`") {
			t.Errorf("docs/admin.md does not say that %s needs a restart", key)
		}
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	parse := func(text string) Config {
		t.Helper()
		c, err := Parse("x", []byte("proxy: {listen: 127.0.0.1:1, upstream: 127.0.0.1:2}\nshadow: {dsn: postgres://a@b/c}\nprivacy: {protected: [public.p]}\n"+text), func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for text, want := range map[string][]string{
		"":                                    nil,
		"audit: {workers: 3, repeat: 9h}":     {"audit.repeat", "audit.workers"},
		"claims: {default: {epsilon: 1}}":     {"claims.default"},
		"log: {level: debug, reveal: values}": {"log.level", "log.reveal"},
		"admin: {listen: 127.0.0.1:3}":        {"admin"},
		"ledger: {dsn: 'host=l'}\nbudgets: [{name: a, epsilon: 1}]": {"budgets", "ledger.dsn"},
		"ledger: {retention: 1h, dsn: 'host=l'}":                    {"ledger.dsn", "ledger.retention"},
	} {
		got := Changed(parse(""), parse(text))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for key, want := range map[string]bool{"audit.workers": true, "privacy.database": false, "proxy.listen": false, "engines.claims.default": true, "engines": false, "log.level": false, "ledger.retention": true, "claims": true} {
		if Reloadable(key) != want {
			t.Errorf("%s can be reloaded: %t", key, !want)
		}
	}
}
