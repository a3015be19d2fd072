package rewrite_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/builtin"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// ofServer returns a database with the table public.people, its catalog, and options in which the table is protected
// and every function that is not built in is declared safe.
func ofServer(t *testing.T, script string) (*pgconn.PgConn, rewrite.Options) {
	t.Helper()
	dsn := pgtest.Database(t)
	conn := connect(t, dsn)
	run(t, conn, "CREATE TABLE people (id int, name text); "+script)
	c, err := read.Catalog(t.Context(), dsn, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return conn, rewrite.Options{Source: c, Protected: []rewrite.Table{table("public", "people")}, AllowFunctions: []string{rewrite.AnyFunction}}
}

// column returns the values of a query of texts, by the first column.
func column(t *testing.T, conn *pgconn.PgConn, query string) map[string]string {
	t.Helper()
	result := conn.ExecParams(t.Context(), query, nil, nil, nil, nil).Read()
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	values := map[string]string{}
	for _, row := range result.Rows {
		values[string(row[0])] = string(row[len(row)-1])
	}
	return values
}

func refusal(r *rewrite.Rewriter, sql string) error {
	_, err := r.Analyze(capture.Query{SQL: sql})
	return err
}

// TestBuiltinFunctions: whatever its version, a server has no function that is listed as safe and is none, and no other
// one comes into a replay, whether it is listed or not.
func TestBuiltinFunctions(t *testing.T) {
	t.Parallel()
	conn, o := ofServer(t, "")
	r := newRewriter(t, o)
	script, err := os.ReadFile("../internal/pg/builtin/functions.sql")
	if err != nil {
		t.Fatal(err)
	}
	unlisted := []string{}
	for name, class := range column(t, conn, string(script)) {
		switch builtin.Of(name) {
		case builtin.Safe:
			if class != string(builtin.Safe) {
				t.Errorf("function %s is listed as safe and is %s on this server", name, class)
			}
		case builtin.Unlisted:
			unlisted = append(unlisted, name)
		}
	}
	all := column(t, conn, "SELECT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace")
	for name := range all {
		if builtin.Of(name) != builtin.Safe && refusal(r, "SELECT "+ident.Quote(name)+"(p) FROM people p") == nil {
			t.Errorf("%s is not refused", name)
		}
	}
	if err := refusal(r, "SELECT count(abs(id)) FROM people"); err != nil || len(all) < 2000 {
		t.Errorf("%d functions; %v", len(all), err)
	}
	slices.Sort(unlisted)
	t.Logf("%d functions; refused because they are not listed: %q", len(all), unlisted)
}

// TestSystemCatalogs: no catalog of a server, of whatever version, is taken for the relation of a user.
func TestSystemCatalogs(t *testing.T) {
	t.Parallel()
	conn, o := ofServer(t, "SET allow_system_table_mods = on; CREATE VIEW pg_catalog.pg_later AS SELECT 1")
	catalogs := column(t, conn, "SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')")
	for name := range catalogs {
		o.Source.Relations = append(o.Source.Relations, relation(catalog.KindTable, "public", name))
	}
	r := newRewriter(t, o)
	for name := range catalogs {
		err := refusal(r, "SELECT count(*) FROM people, "+name)
		if err != nil && reasonOf(t, err) == reasons.UnknownTable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(catalogs) < 70 {
		t.Errorf("%d catalogs", len(catalogs))
	}
}

// TestLaterBuiltins: what a later version of the server has beyond the lists is refused, in every notation, unless the
// configuration names it.
func TestLaterBuiltins(t *testing.T) {
	t.Parallel()
	_, o := ofServer(t, `
		CREATE FUNCTION pg_catalog.later(anyelement) RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION pg_catalog.later_number(int, int DEFAULT 1) RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION later(text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
		CREATE OPERATOR pg_catalog.<<||>> (LEFTARG = int, RIGHTARG = int, FUNCTION = int4pl)`)
	any, named := newRewriter(t, o), o
	named.AllowFunctions = []string{"later", "pg_catalog.later_number"}
	allowed := newRewriter(t, named)
	for sql, canBeNamed := range map[string]bool{
		"SELECT later(p) FROM people p":                            true,
		"SELECT pg_catalog.later(p) FROM people p":                 true,
		"SELECT later(name) FROM people":                           true,
		"SELECT later_number(id) FROM people":                      false,
		"SELECT pg_catalog.later_number(id, 2) FROM people":        true,
		"SELECT p.later FROM people p":                             false,
		"SELECT (p).later FROM people p":                           false,
		"SELECT (id).later_number FROM people":                     false,
		"SELECT id OPERATOR(pg_catalog.<<||>>) 1 FROM people":      false,
		"SELECT id <<||>> 1 FROM people":                           false,
		"SELECT count(*) FROM people GROUP BY pg_catalog.later(1)": true,
	} {
		err := refusal(any, sql)
		if err == nil {
			t.Errorf("%s is not refused", sql)
		} else if reason := reasonOf(t, err); reason != reasons.UnknownFunction {
			t.Errorf("%s: %v", sql, err)
		}
		if err := refusal(allowed, sql); (err == nil) != canBeNamed {
			t.Errorf("%s with the functions named: %v", sql, err)
		}
	}
	for _, sql := range []string{"SELECT p.later_number FROM people p", "SELECT p.bernoulli, p.boolin FROM people p"} { // columns
		if err := refusal(any, sql); err != nil {
			t.Error(err)
		}
	}
}
