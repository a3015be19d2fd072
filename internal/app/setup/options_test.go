package setup

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
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
		{"SELECT 1", rewrite.ReasonNoCopy},
		{"CREATE VIEW d0.adults AS SELECT * FROM d0.people", rewrite.ReasonNoCopy},
		{"CREATE VIEW d1.adults AS SELECT * FROM d1.people", ""},
		{"CREATE OR REPLACE VIEW d1.adults AS SELECT * FROM d0.people", rewrite.ReasonNoCopy},
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

// TestProtectedNames: with a catalog every statement reaches the auditor until it reports the names that matter;
// without one, those that name a protected table.
func TestProtectedNames(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Privacy.Protected = []string{"public.people"}
	c.Claims.SafeFunctions = []string{"headcount"}
	c.Claims.Functions = []config.Function{{Name: "dp.noisy_total", Epsilon: 1}}
	for _, catalog := range []config.Secret{"", "host=x"} {
		c.Privacy.Catalog = catalog
		mentions := capture.Mentions(ProtectedNames(&c))
		for sql, want := range map[string]bool{
			"SELECT count(*) FROM people":   true,
			"SELECT HeadCount()":            catalog != "",
			"SELECT dp.noisy_total(0.5)":    catalog != "",
			"SELECT count(*) FROM products": catalog != "",
		} {
			if got := mentions(sql); got != want {
				t.Errorf("catalog %t: %s: %t, want %t", catalog != "", sql, got, want)
			}
		}
	}
}
