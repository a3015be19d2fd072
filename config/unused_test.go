package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestUnused: each setting without effect is found, with its path, and nothing else.
func TestUnused(t *testing.T) {
	t.Parallel()
	const base = `
proxy: {listen: "127.0.0.1:6432", upstream: "127.0.0.1:5432"}
shadow: {dsn: "postgres://127.0.0.1/shadow"}
privacy: {protected: [public.users], database: shop, catalog: "postgres://127.0.0.1/shop"}
`
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"rules", "claims: {rules: [{user: a, epsilon: 1}, {user: a, table: public.users, epsilon: 2}, {user: b, epsilon: 1}]}", "claims.rules[1]: matches nothing: claims.rules[0] matches all"},
		{"rule after one for everything", "claims: {rules: [{pattern: x, epsilon: 1}, {user: a, pattern: x, epsilon: 2}]}", "claims.rules[1]: matches nothing"},
		{"database", "claims: {rules: [{database: other, epsilon: 1}]}", `claims.rules[0].database: matches nothing: sessions in database "other"`},
		{"labels", "claims: {security_labels: [anon]}", "claims.security_labels: has no effect"},
		{"trust", "claims: {trust: [setting], settings: {epsilon: '', delta: ''}}", "claims.trust: setting has no effect"},
		{"combine", "claims: {combine: share}", "claims.combine: has no effect: claims.functions is empty"},
		{"sequences", "audit: {sequence_composition: max, sequences: false}", "audit.sequence_composition: has no effect: audit.sequences is false"},
		{"sequences that are on", "audit: {sequence_composition: max}", ""},
		{"hoisting", "audit: {hoist: false, hoist_space: 2GiB}", "audit.hoist_space: has no effect: audit.hoist is false"},
		{"copies by hand", "neighbours: {copy_limit: 3GiB}", "neighbours.copy_limit: has no effect: neighbours.source is empty"},
		{"no ledger", "ledger: {dsn: memory, retention: 1h}", "ledger.retention: has no effect: there is no ledger"},
		{
			"routes", `alerts: {receivers: [{name: a, type: stdout}], routes: [{kind: violation, receivers: [a]}, {kind: violation, user: b, receivers: [a]}]}`,
			"alerts.routes[1]: matches nothing: alerts.routes[0] matches all",
		},
		{
			"kinds that there are not", `alerts: {receivers: [{name: a, type: stdout}], routes: [{kind: budget_exceeded, receivers: [a]}, {receivers: [a]}]}`,
			"alerts.routes[0].kind: matches nothing: there are no alerts budget_exceeded, because budgets is empty",
		},
		{
			"engines", `alerts: {receivers: [{name: a, type: stdout}], routes: [{engine: nosuch, receivers: [a]}, {receivers: [a]}]}`,
			`alerts.routes[0].engine: matches nothing: there is no engine "nosuch"`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, err := Parse("dpwatch.yaml", []byte(base+tc.text), func(string) string { return "" })
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range c.Unused() {
				got = append(got, u.Path+": "+u.Text)
			}
			if text := strings.Join(got, "\n"); len(got) > 1 || (text == "") != (tc.want == "") || !strings.HasPrefix(text, tc.want) {
				t.Errorf("unused: %q; want %q", text, tc.want)
			}
		})
	}
}

// TestExampleIsUsed: no setting of the example has no effect.
func TestExampleIsUsed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../examples/dpwatch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("dpwatch.yaml", regexp.MustCompile(`\$\{file:[^}]*\}`).ReplaceAll(text, []byte("x")), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if unused := c.Unused(); len(unused) > 0 {
		t.Errorf("unused: %v", unused)
	}
}
