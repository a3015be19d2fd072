package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

func script(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// TestCatalogs: a view is refused until every neighbour has its own over its own tables; a copy that reads the other
// world is refused again.
func TestCatalogs(t *testing.T) {
	t.Parallel()
	shop, shadow := pgtest.Database(t), pgtest.Database(t)
	script(t, shop, "CREATE TABLE people (id int); CREATE VIEW adults AS SELECT * FROM people")
	script(t, shadow, "CREATE SCHEMA d0; CREATE SCHEMA d1; CREATE TABLE d0.people (id int); CREATE TABLE d1.people (id int)")
	c := config.Default()
	c.Privacy.Protected, c.Privacy.Catalog, c.Shadow.DSN = []string{"public.people"}, config.Secret(shop), config.Secret(shadow)
	renew := catalogs(c)
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
		script(t, shadow, step.change)
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

// TestCatalogsFailSoft: what cannot be read is told by its key, without the password, and rewriting goes on.
func TestCatalogsFailSoft(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Privacy.Protected = []string{"public.people"}
	c.Shadow.DSN, c.Privacy.Catalog = "postgres://u:s3cr3t@127.0.0.1:1/x", "postgres://u:s3cr3t@127.0.0.1:1/y"
	r, err := catalogs(c)(t.Context())
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
