package config_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpwatch/dpwatch/config"
)

const minimal = `
proxy: {listen: 127.0.0.1:6432, upstream: 127.0.0.1:5432}
shadow: {dsn: "postgres://u:${PW}@localhost/shadow"}
privacy: {protected: [public.users]}
`

func env(name string) string { return map[string]string{"PW": "s3cret"}[name] }

// anyValue is an environment with every variable but the one of tests.
func anyValue(name string) string {
	if name == config.TuningVariable {
		return ""
	}
	return "v"
}

func TestParseMinimal(t *testing.T) {
	t.Parallel()
	got, err := config.Parse("f.yaml", []byte(minimal), env)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Proxy.Listen = []config.Address{{Network: "tcp", Address: "127.0.0.1:6432"}}
	want.Proxy.Upstream = config.Address{Network: "tcp", Address: "127.0.0.1:5432"}
	want.Shadow.DSN = "postgres://u:s3cret@localhost/shadow"
	want.Privacy.Protected = []string{"public.users"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	got, err := config.Parse("f.yaml", []byte(minimal+"audit: {windows: ['22:00-06:00 Europe/Berlin', '12:30-13:00']}\n"), env)
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprint(got.Audit.Windows); s != "[22:00-06:00 Europe/Berlin 12:30-13:00 UTC]" {
		t.Errorf("windows %s", s)
	}
	if text, err := config.Print(got); err != nil || !strings.Contains(string(text), "22:00-06:00 Europe/Berlin") {
		t.Errorf("printed: %s, %v", text, err)
	}
}

// The example lists every key and shows the defaults.
func TestExample(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../examples/dpwatch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	password := t.TempDir() + "/shadow.password"
	if err := os.WriteFile(password, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "${file:/etc/dpwatch/shadow.password}", "${file:"+password+"}", 1)
	got, err := config.Parse("dpwatch.yaml", []byte(text), func(string) string { return "" }) // nothing from the environment is needed
	if err != nil {
		t.Fatal(err)
	}
	got.Claims.Functions, got.Claims.SafeFunctions, got.Privacy.Protected = nil, nil, nil
	got.Shadow.DSN, got.Admin, got.Proxy.Listen, got.Proxy.Upstream = "", nil, nil, config.Address{}
	got.Privacy.UnclaimedReads.Rules, got.Privacy.Public, got.Claims.Trust, got.Claims.Rules, got.Claims.SecurityLabels = nil, nil, nil, nil, nil
	got.Proxy.ProxyProtocol, got.Audit.Windows, got.Budgets = nil, nil, nil
	got.Alerts.Receivers, got.Alerts.Routes = nil, nil
	got.Privacy.Paths, got.Neighbours.Grant, got.Neighbours.Measures = nil, nil, nil
	if diff := cmp.Diff(config.Default(), got); diff != "" {
		t.Errorf("the example does not show the defaults (-default +example)\n%s", diff)
	}
	for _, key := range config.Keys() {
		last := key[strings.LastIndexByte(key, '.')+1:]
		if !strings.Contains(string(data), last) {
			t.Errorf("the example does not mention %s", key)
		}
	}
}

func TestErrorsAllAtOnce(t *testing.T) {
	t.Parallel()
	const bad = `proxy:
  listen: 127.0.0.1:6432
  upstraem: 127.0.0.1:5432
  max_sessions: many
  drain_timeout: 5
shadow:
  dsn: postgres://u:${MISSING}@localhost/shadow
  d1: [d0, x, x]
privacy:
  protected: [users, 'public."Line Items"']
claims:
  combine: both
  default: {epsilon: -1}
  rules:
    - {name: all, epsilon: 1}
  security_labels: [anon]
audit:
  confidence: 1.5
  workers: 2
  workers: 3
`
	_, err := config.Parse("bad.yaml", []byte(bad), env)
	var found config.Errors
	if !errors.As(err, &found) {
		t.Fatalf("got %v, want Errors", err)
	}
	for _, want := range []string{
		`bad.yaml:1: proxy.upstream: missing`,
		`bad.yaml:3: proxy.upstraem: unknown key: did you mean "upstream"?`,
		`bad.yaml:4: proxy.max_sessions: "many" is not a whole number`,
		`bad.yaml:5: proxy.drain_timeout: "5" is not a duration`,
		`bad.yaml:7: shadow.dsn: ${MISSING} is not set`,
		`bad.yaml:8: shadow.d1[0]: is the schema of D0`,
		`bad.yaml:8: shadow.d1[2]: "x" is listed twice`,
		`bad.yaml:10: privacy.protected[0]: "users" is not schema.table`,
		`bad.yaml:10: privacy.protected[1]: public."Line Items": write names as in the catalog`,
		`bad.yaml:12: claims.combine: must be add`,
		`bad.yaml:13: claims.default.epsilon: must be`,
		`bad.yaml:15: claims.rules[0]: matches every query`,
		`bad.yaml:16: claims.security_labels: needs privacy.catalog`,
		`bad.yaml:18: audit.confidence`,
		`bad.yaml:20: audit.workers: duplicate key`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing error %q", want)
		}
	}
	if t.Failed() {
		t.Logf("got\n%v", err)
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 15 {
		t.Errorf("%d errors, want 15:\n%v", n, err)
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"not YAML", "proxy: [", "invalid YAML"},
		{"two documents", minimal + "---\nx: 1\n", "holds 2 YAML documents"},
		{"a list at the top", "- a\n", "keys and values"},
		{"no value", minimal + "log:\n", "log: has no value"},
		{"alias", "log: &a {level: info}\n", "anchors"},
		{"listens on the upstream", strings.Replace(minimal, "5432", "6432", 1), "connect to itself"},
		{"bad port", strings.Replace(minimal, "5432", "99999", 1), "port must be"},
		{"relative socket", strings.Replace(minimal, "127.0.0.1:5432", "unix:x", 1), "absolute path"},
		{"two tables of one name", strings.Replace(minimal, "[public.users]", "[public.users, app.users]", 1), "have the same name"},
		{"a table listed twice", strings.Replace(minimal, "[public.users]", "[public.users, public.users]", 1), `privacy.protected[1]: "public.users" is listed twice`},
		{"a system catalog", strings.Replace(minimal, "public.users", "pg_catalog.x", 1), "system catalog"},
		{"a rule on another table", minimal + "claims: {rules: [{name: r, table: public.x, epsilon: 1}]}\n", "not listed in privacy.protected"},
		{"level", minimal + "log: {level: loud}\n", "must be debug"},
		{"deterministic answers", minimal + "audit: {deterministic: maybe}\n", "audit.deterministic: must be violation"},
		{"how to confirm", minimal + "audit: {confirm: {vary: true}}\n", "audit.confirm.vary"},
		{"TLS without certificate", strings.Replace(minimal, "5432}", "5432, tls: {mode: require}}", 1), "proxy.tls.certificate: missing"},
		{"TLS mode", strings.Replace(minimal, "5432}", "5432, tls: {mode: yes}}", 1), "proxy.tls.mode: \"yes\": must be"},
		{"certificate for nothing", strings.Replace(minimal, "5432}", "5432, tls: {certificate: x}}", 1), "uses no certificate"},
		{"clients' CA without require", strings.Replace(minimal, "5432}", "5432, tls: {mode: allow, certificate: x, key: x, client_ca: x}}", 1), "needs mode require"},
		{"same_certificate", strings.Replace(minimal, "5432}", "5432, tls: {same_certificate: no}}", 1), "check or assume"},
		{"upstream TLS mode", strings.Replace(minimal, "5432}", "5432, upstream_tls: {mode: allow}}", 1), "verify-full"},
		{"pass-through and TLS", strings.Replace(minimal, "5432}", "5432, tls: {mode: passthrough}, upstream_tls: {mode: prefer}}", 1), "must be disable"},
		{"TLS on a socket", strings.Replace(minimal, "127.0.0.1:5432}", "unix:/x, upstream_tls: {mode: prefer}}", 1), "unix socket"},
		{"CA that is not used", strings.Replace(minimal, "5432}", "5432, upstream_tls: {mode: require, ca: x}}", 1), "does not verify"},
		{"verify-ca without CA", strings.Replace(minimal, "5432}", "5432, upstream_tls: {mode: verify-ca}}", 1), "proxy.upstream_tls.ca: missing"},
		{"certificate without key", strings.Replace(minimal, "5432}", "5432, upstream_tls: {mode: require, certificate: x}}", 1), "give both"},
		{"not a network", strings.Replace(minimal, "5432}", "5432, proxy_protocol: [10.0.0.0/33]}", 1), "not a network"},
		{"not a time of the day", minimal + "audit: {windows: [22-6]}\n", "audit.windows[0]: \"22-6\" is not a time of the day"},
		{"a policy", strings.Replace(minimal, "protected:", "unclaimed_reads: {policy: shout}, protected:", 1), "privacy.unclaimed_reads.policy: "},
		{"a rule for every unclaimed read", strings.Replace(minimal, "protected:", "unclaimed_reads: {rules: [{policy: count}]}, protected:", 1), "matches every query: use privacy.unclaimed_reads.policy for that"},
		{"a budget without a name", minimal + "budgets: [{epsilon: 1}]\nledger: {dsn: 'host=x'}\n", "budgets[0].name: missing"},
		{"a budget without an epsilon", minimal + "budgets: [{name: a}]\nledger: {dsn: 'host=x'}\n", "budgets[0].epsilon: must be a finite number, more than 0"},
		{"a budget of two names", minimal + "budgets: [{name: a, epsilon: 1}, {name: a, epsilon: 2}]\nledger: {dsn: 'host=x'}\n", "budgets[1].name: \"a\" is the name of another budget"},
		{"an unknown composition", minimal + "budgets: [{name: a, epsilon: 1, composition: strong}]\nledger: {dsn: 'host=x'}\n", "must be one of [best basic advanced zcdp]"},
		{"advanced composition without a delta", minimal + "budgets: [{name: a, epsilon: 1, composition: advanced}]\nledger: {dsn: 'host=x'}\n", "budgets[0].delta: must be more than 0"},
		{"a period beyond the retention", minimal + "budgets: [{name: a, epsilon: 1, period: 2161h}]\nledger: {dsn: 'host=x'}\n", "is longer than ledger.retention (2160h0m0s)"},
		{"applications for ever", minimal + "budgets: [{name: a, epsilon: 1, applications: true}]\nledger: {dsn: 'host=x'}\n", "applications are known only as long as ledger.retention"},
		{"an unknown form of statements", minimal + "ledger: {statements: hidden}\n", "ledger.statements: \"hidden\""},
		{"encrypted statements", minimal + "ledger: {statements: encrypted}\n", "f.yaml:5: ledger.statements: encrypted is no longer a value: write plain"},
		{"what logs reveal", minimal + "log: {reveal: all}\n", "log.reveal: \"all\": must be none, sql or values"},
		{"budgets without a ledger", minimal + "budgets: [{name: a, epsilon: 1}]\n", "budgets: need a ledger"},
		{"an empty window", minimal + "audit: {windows: ['22:00-22:00']}\n", "is empty"},
		{"not a time zone", minimal + "audit: {windows: ['22:00-06:00 Europe/Berlon']}\n", "not a known time zone"},
		{"share", minimal + "audit: {share: 1.5}\n", "must be from 0 to 1"},
		{"watch share", minimal + "audit: {watch_share: 0.9}\n", "must be from 0"},
		{"budget of trials", minimal + "audit: {budget: {trials_per_hour: 10}}\n", "must be at least 600; 0 = no limit"},
		{"budget of seconds", minimal + "audit: {budget: {database_seconds_per_hour: 5}}\n", "must be a number of at least 30"},
		{"memory", minimal + "audit: {memory: 1MiB}\n", "audit.memory: is 1MiB: must be at least 64MiB"},
		{"hoist space", minimal + "audit: {hoist_space: 1MiB}\n", "audit.hoist_space: is 1MiB: must be at least 4MiB"},
		{"bad dsn", strings.Replace(minimal, "postgres://u", "post gres://u", 1), "not a PostgreSQL connection string"},
		{"dsn with an unreadable file", strings.Replace(minimal, "postgres://u", "postgres://u@h/d?sslmode=verify-full&sslrootcert=/none.pem#", 1), "certificate or key file that cannot be read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("f.yaml", []byte(tc.text), env)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to say %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestScalars(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("f", []byte(`
proxy: {listen: ["[::1]:6432", unix:/run/x/.s.PGSQL.6432], upstream: db:5432, drain_timeout: 90s, max_statement: 2MiB}
shadow: {dsn: "host=/tmp user=a", d1: one}
privacy: {protected: [public.users]}
log: {level: "$${debug}"}
`), env)
	if err == nil || !strings.Contains(err.Error(), "log.level") {
		t.Errorf("an escaped ${ was filled: %v", err)
	}
	if got := c.Proxy.Listen[1]; got != (config.Address{Network: "unix", Address: "/run/x/.s.PGSQL.6432"}) {
		t.Errorf("listen[1] = %+v", got)
	}
	if got := time.Duration(c.Proxy.DrainTimeout); got != 90*time.Second {
		t.Errorf("drain_timeout = %v", got)
	}
	if c.Proxy.MaxStatement != 2<<20 || c.Proxy.MaxStatement.String() != "2MiB" {
		t.Errorf("max_statement = %v", c.Proxy.MaxStatement)
	}
	if diff := cmp.Diff([]string{"one"}, c.Shadow.D1); diff != "" {
		t.Error(diff)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("f", []byte(`
engines:
  - name: x@[::1]:5432
    proxy:
      - {name: a, listen: ["[::1]:6432"], upstream: "[::1]:5432", tls: {mode: passthrough}, proxy_protocol: [10.1.2.3/8, "::1"]}
      - {listen: unix:/run/x, upstream: unix:/run/y}
proxy: {tls: {same_certificate: assume}, proxy_protocol: 10.9.0.0/16}
shadow: {dsn: "host=/tmp user=a"}
privacy: {protected: [public.users]}
`), env)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Route{
		{
			Name: "a", Listen: []config.Address{{Network: "tcp", Address: "[::1]:6432"}}, Upstream: config.Address{Network: "tcp", Address: "[::1]:5432"},
			TLS: config.TLS{Mode: "passthrough", SameCertificate: "assume"}, UpstreamTLS: config.UpstreamTLS{Mode: "disable"},
			ProxyProtocol: []config.Network{"10.0.0.0/8", "::1/128"},
		},
		{
			Name: "unix:/run/x", Listen: []config.Address{{Network: "unix", Address: "/run/x"}}, Upstream: config.Address{Network: "unix", Address: "/run/y"},
			TLS: config.TLS{Mode: "disable", SameCertificate: "assume"}, UpstreamTLS: config.UpstreamTLS{Mode: "disable"},
			ProxyProtocol: []config.Network{"10.9.0.0/16"},
		},
	}
	if diff := cmp.Diff(want, c.AllEngines()[0].Proxy.AllRoutes()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	printed, err := config.Print(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := config.Parse("printed", printed, env)
	if err != nil && strings.Contains(err.Error(), "proxy.") { // the hidden DSN is an error
		t.Fatalf("what was printed cannot be read: %v\n%s", err, printed)
	}
	if diff := cmp.Diff(want, again.AllEngines()[0].Proxy.AllRoutes(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("printed and read again (-want +got)\n%s", diff)
	}
	single, err := config.Parse("f", []byte(minimal), env)
	if err != nil {
		t.Fatal(err)
	}
	if got := single.Proxy.AllRoutes(); len(got) != 1 || got[0].Name != "127.0.0.1:6432" || got[0].Upstream.Address != "127.0.0.1:5432" {
		t.Errorf("the single route is %+v", got)
	}
}

// Only ParseAndCheck reads the named files: the auditor parses the same text and must not need the keys.
func TestParseAndCheck(t *testing.T) {
	t.Parallel()
	junk := t.TempDir() + "/junk"
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"tls: {mode: require, certificate: /nonexistent/a, key: JUNK}":        "f.yaml:2: proxy.tls.certificate: /nonexistent/a does not exist",
		"tls: {mode: require, certificate: JUNK, key: JUNK}":                  "f.yaml:2: proxy.tls.certificate: JUNK with the key",
		"upstream_tls: {mode: verify-ca, ca: JUNK}":                           "f.yaml:2: proxy.upstream_tls.ca: JUNK holds no certificate",
		"upstream_tls: {mode: require, certificate: JUNK, key: /nonexistent}": "f.yaml:2: proxy.upstream_tls.key: /nonexistent does not exist",
	} {
		data := []byte(strings.Replace(minimal, "5432}", "5432, "+strings.ReplaceAll(text, "JUNK", junk)+"}", 1))
		if _, _, err := config.ParseAndCheck("f.yaml", data, env); err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(want, "JUNK", junk)) {
			t.Errorf("%s: got %v, want it to say %q", text, err, want)
		}
		if _, err := config.Parse("f.yaml", data, env); err != nil {
			t.Errorf("%s: Parse alone: %v", text, err)
		}
	}
}

func TestPrintHidesSecrets(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("f.yaml", []byte(minimal), env)
	if err != nil {
		t.Fatal(err)
	}
	text, err := config.Print(c)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "s3cret") || !strings.Contains(string(text), `dsn: "***"`) {
		t.Errorf("printed\n%s", text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte("proxy: {listen: [a, {b: c}], upstream: ~}\n"))
	f.Add([]byte("claims: {rules: [{epsilon: .nan}, 3]}"))
	f.Add([]byte("proxy: {listen: [127.0.0.1:1, ::1, a:, :b, [::1]:5], proxy_protocol: [fd00::/8]}"))
	f.Add([]byte("admin: {listeners: [{listen: [a:1, unix:/x], hosts: [x:1], tls: {key: k}}], token_file: t}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := config.Parse("f", data, anyValue)
		var found config.Errors
		if err != nil && !errors.As(err, &found) {
			t.Errorf("an error that is not Errors: %v", err)
		}
	})
}

func ExampleParse() {
	_, err := config.Parse("dpwatch.yaml", []byte("proxy: {listne: 127.0.0.1:6432}\n"), os.Getenv)
	first, _, _ := strings.Cut(err.Error(), "\n")
	os.Stdout.WriteString(first + "\n")
	// Output: dpwatch.yaml:1: proxy.listne: unknown key: did you mean "listen"?
}

func TestEngines(t *testing.T) {
	t.Parallel()
	const rest = "proxy: {listen: 127.0.0.1:1, upstream: 127.0.0.1:2}\nprivacy: {protected: [public.t]}\nshadow: {dsn: 'postgres://u@h/d', d1: [d1, d2], "
	for _, tc := range []struct {
		name, shadow, wantErr string
		want                  []string
	}{
		{"none", "d0: d0", "", nil},
		{"one", "engine: {dsn: 'postgres://u@h:7/x', protocol: simple}", "", []string{"postgres://u@h:7/x"}},
		{"one each", "engine: {dsn: ['host=a', 'host=b', 'host=c']}", "", []string{"host=a", "host=b", "host=c"}},
		{"one is missing", "engine: {dsn: ['host=a', 'host=b']}", "shadow.engine.dsn: has 2 connection strings for 3 copies", nil},
		{"no connection string", "engine: {dsn: ''}", "shadow.engine.dsn[0]: missing", nil},
		{"another text", "engine: {dsn: x}", "not a PostgreSQL connection string", nil},
		{"protocol", "engine: {protocol: smoke}", `"smoke": must be captured, extended or simple`, nil},
		{"a former value", "engine: 'host=a'", "f:3: shadow.engine: is a section now: write engine: {dsn: postgres://...}", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, err := config.Parse("f", []byte(rest+tc.shadow+"}\n"), func(string) string { return "" })
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("errors %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.Shadow.Engines(c.Shadow.Copies())); diff != "" {
				t.Error(diff)
			}
		})
	}
}
