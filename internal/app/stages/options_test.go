package stages

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestCatalogs: a view is refused until every neighbour has its own copy over its own tables; a copy that reads another
// schema's tables is refused again.
func TestCatalogs(t *testing.T) {
	t.Parallel()
	shop, shadow := pgtest.Database(t), pgtest.Database(t)
	pgtest.Exec(t, shop, "CREATE TABLE people (id int); CREATE VIEW adults AS SELECT * FROM people")
	pgtest.Exec(t, shadow, "CREATE SCHEMA d0; CREATE SCHEMA d1; CREATE TABLE d0.people (id int); CREATE TABLE d1.people (id int)")
	c := config.Default()
	c.Privacy.Protected, c.Privacy.Catalog, c.Shadow.DSN = []string{"public.people"}, config.Secret(shop), config.Secret(shadow)
	renew := Rewriters(c)
	for _, step := range []struct {
		change string
		want   rewrite.Reason // "" = rewritten
	}{
		{"SELECT 1", reasons.NoCopy},
		{"CREATE VIEW d0.adults AS SELECT * FROM d0.people", reasons.NoCopy},
		{"CREATE VIEW d1.adults AS SELECT * FROM d1.people", ""},
		{"CREATE OR REPLACE VIEW d1.adults AS SELECT * FROM d0.people", reasons.NoCopy},
		{"DROP VIEW d1.adults; CREATE MATERIALIZED VIEW d1.adults AS SELECT * FROM d1.people", ""},
	} {
		pgtest.Exec(t, shadow, step.change)
		r, err := renew(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		plan, err := r.Analyze(capture.Query{SQL: "SELECT count(*) FROM adults", User: "ann"})
		var refusal *rewrite.UnsupportedError
		if errors.As(err, &refusal) != (step.want != "") || refusal != nil && refusal.Reason != step.want {
			t.Errorf("after %s: %v; want %q", step.change, err, step.want)
			continue
		}
		if step.want == "" {
			if sql, err := plan.For("d1"); err != nil || sql != `SELECT count(*) FROM "d1".adults` {
				t.Errorf("%s %v", sql, err)
			}
		}
	}
}

// TestCatalogsFailSoft: a catalog that cannot be read is reported by its key, without the password, and rewriting
// continues.
func TestCatalogsFailSoft(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Privacy.Protected = []string{"public.people"}
	c.Shadow.DSN, c.Privacy.Catalog = "postgres://u:s3cr3t@127.0.0.1:1/x", "postgres://u:s3cr3t@127.0.0.1:1/y"
	r, err := Rewriters(c)(t.Context())
	if err == nil || !strings.Contains(err.Error(), "privacy.catalog") || !strings.Contains(err.Error(), "shadow.dsn") || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("%v; want both keys and no password", err)
	}
	if r == nil {
		t.Fatal("no rewriter")
	}
	if _, err := r.Analyze(capture.Query{SQL: "SELECT count(*) FROM people"}); err != nil {
		t.Error(err)
	}
}

// TestConfigurationIsChecked: the relay loads a configuration without the stages, so package config refuses what
// rewrite would refuse, with the key.
func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	const whole = "proxy: {listen: 127.0.0.1:1, upstream: 127.0.0.1:2}\nshadow: {dsn: host=x}\n"
	long := strings.Repeat("a", ident.MaxBytes+1)
	for _, tc := range []struct {
		text string
		key  string // that is refused; "" = none
	}{
		{"privacy: {protected: [public.users]}", ""},
		{"privacy: {protected: [public.users], public: [public.zip]}\nclaims: {safe_functions: [laplace, dp.noise], functions: [{name: dp.sum, epsilon: -1}], default: {epsilon: 1000, delta: 0.9}}", ""},
		{"privacy: {protected: [public." + long + "]}", "privacy.protected[0]"},
		{"privacy: {protected: [" + long + ".users]}", "privacy.protected[0]"},
		{`privacy: {protected: ["public.us\0ers"]}`, "privacy.protected[0]"},
		{"privacy: {protected: [public.users, shop.users]}", "privacy.protected[1]"},
		{"privacy: {protected: [pg_temp.users]}", "privacy.protected[0]"},
		{"privacy: {protected: [public.users], public: [public.users]}", "privacy.public[0]"},
		{"privacy: {protected: [public.users]}\nclaims: {safe_functions: [a.b.c]}", "claims.safe_functions[0]"},
		{"privacy: {protected: [public.users]}\nclaims: {safe_functions: [.b]}", "claims.safe_functions[0]"},
		{`privacy: {protected: [public.users]}` + "\n" + `claims: {safe_functions: [""]}`, "claims.safe_functions[0]"},
		{"privacy: {protected: [public.users]}\nclaims: {functions: [{name: a.b.c, epsilon: 1}]}", "claims.functions[0].name"},
		{"privacy: {protected: [public.users]}\nclaims: {default: {epsilon: 1000.5}}", "claims.default.epsilon"},
		{"privacy: {protected: [public.users]}\nclaims: {combine: max}", "claims.combine"},
		{"privacy: {protected: [public.users]}\nclaims: {rules: [{table: public.zip, epsilon: 1}]}", "claims.rules[0].table"},
		{"privacy: {protected: [public.users]}\nclaims: {rules: [{pattern: '(', epsilon: 1}]}", "claims.rules[0].pattern"},
		{"privacy: {protected: [public.users]}\nclaims: {rules: [{user: a, epsilon: 1, delta: 1}]}", "claims.rules[0].delta"},
	} {
		c, err := config.Parse("dpwatch.yaml", []byte(whole+tc.text+"\n"), func(string) string { return "" })
		_, rewriteErr := rewrite.New(RewriteOptions(c))
		switch {
		case tc.key == "" && (err != nil || rewriteErr != nil):
			t.Errorf("%s: %v, %v", tc.text, err, rewriteErr)
		case tc.key != "" && rewriteErr == nil:
			t.Errorf("%s: rewrite accepts it", tc.text)
		case tc.key != "" && (err == nil || !strings.Contains(err.Error(), tc.key+":")):
			t.Errorf("%s: %v; want a fault of %s", tc.text, err, tc.key)
		}
	}
}
