package read_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// database creates a database, runs the script in it and returns its connection string.
func database(t *testing.T, script string) string {
	t.Helper()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, script)
	return dsn
}

func contents(t *testing.T, dsn string) *catalog.Catalog {
	t.Helper()
	c, err := read.Catalog(t.Context(), dsn, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shop has one of every kind of relation and function.
const shop = `
CREATE SCHEMA app;
CREATE TABLE public.users (id int, income float8);
CREATE TABLE public.events (id int, at date) PARTITION BY RANGE (at);
CREATE TABLE app.events_1 PARTITION OF public.events FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE public.staff () INHERITS (public.users);
CREATE SEQUENCE public.ids;
CREATE FUNCTION app.pay(float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 12';
CREATE FUNCTION app.same(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 = $2';
CREATE OPERATOR app.=== (LEFTARG = int, RIGHTARG = int, FUNCTION = app.same);
CREATE VIEW public.paid AS SELECT u.id, app.pay(u.income) FROM public.users u WHERE u.id OPERATOR(app.===) 1;
CREATE VIEW app.paid_twice AS SELECT * FROM public.paid, LATERAL (SELECT count(*) FROM public.events) e;
CREATE MATERIALIZED VIEW public.kept AS SELECT count(*) FROM public.users;
CREATE TABLE public.allowed (id int);
CREATE TABLE public.secret (id int);
ALTER TABLE public.secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON public.secret USING (id IN (SELECT a.id FROM public.allowed a));
CREATE FUNCTION public.atomic_count(s public.staff DEFAULT NULL, f float8 DEFAULT app.pay(1)) RETURNS bigint LANGUAGE sql STABLE SET search_path = app, "A b" BEGIN ATOMIC SELECT count(*) FROM public.users; END;
CREATE FUNCTION public.step(n bigint, v int) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN n + 1; END';
CREATE DOMAIN app.age AS int CHECK (VALUE OPERATOR(app.===) 1 OR app.pay(VALUE) > 0);
CREATE TYPE app.sum AS (cents int);
CREATE FUNCTION app.to_sum(int) RETURNS app.sum LANGUAGE sql IMMUTABLE AS 'SELECT ROW($1)::app.sum';
CREATE FUNCTION app.to_int(app.sum) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT ($1).cents';
CREATE CAST (int AS app.sum) WITH FUNCTION app.to_sum(int);
CREATE CAST (app.sum AS int) WITH FUNCTION app.to_int(app.sum) AS IMPLICIT;
CREATE AGGREGATE public.tally(int) (SFUNC = public.step, STYPE = bigint, INITCOND = '0');
`

func TestRead(t *testing.T) {
	t.Parallel()
	got := contents(t, database(t, shop))
	table := func(schema, name string) rewrite.Table { return rewrite.Table{Schema: schema, Name: name} }
	relation := func(kind catalog.RelationKind, schema, name string, reads ...rewrite.Table) catalog.Relation {
		return catalog.Relation{Table: table(schema, name), Kind: kind, Reads: reads}
	}
	secret := relation(catalog.KindTable, "public", "secret", table("public", "allowed"))
	secret.RowSecurity = true
	secret.Effects = []catalog.Effect{{Events: catalog.Select | catalog.Insert | catalog.Update | catalog.Delete, Reads: []rewrite.Table{table("public", "allowed")}}}
	paid := relation(catalog.KindView, "public", "paid", table("public", "users"))
	paid.Calls = []rewrite.Table{table("app", "pay"), table("app", "same")}
	want := &catalog.Catalog{
		Schemas: []string{"app", "public"},
		Relations: []catalog.Relation{
			relation(catalog.KindTable, "app", "events_1"),
			relation(catalog.KindView, "app", "paid_twice", table("public", "events"), table("public", "paid")),
			relation(catalog.KindTable, "public", "allowed"),
			relation(catalog.KindPartitioned, "public", "events", table("app", "events_1")),
			relation(catalog.KindSequence, "public", "ids"),
			relation(catalog.KindMaterialized, "public", "kept", table("public", "users")),
			paid,
			secret,
			relation(catalog.KindTable, "public", "staff"),
			relation(catalog.KindTable, "public", "users", table("public", "staff")),
		},
		Functions: []catalog.Function{
			{Schema: "app", Name: "pay", Kind: catalog.KindFunction, OfOne: true, Arguments: "double precision", Result: "double precision", Volatility: "immutable", Language: "sql", Body: "SELECT $1 * 12"},
			{Schema: "app", Name: "same", Kind: catalog.KindFunction, Arguments: "integer, integer", Result: "boolean", Volatility: "immutable", Language: "sql", Body: "SELECT $1 = $2"},
			{Schema: "app", Name: "to_int", Kind: catalog.KindFunction, OfOne: true, OfRow: true, Arguments: "app.sum", Result: "integer", Volatility: "immutable", Language: "sql", Body: "SELECT ($1).cents", Types: []rewrite.Table{table("app", "sum")}},
			{Schema: "app", Name: "to_sum", Kind: catalog.KindFunction, OfOne: true, Arguments: "integer", Result: "app.sum", Volatility: "immutable", Language: "sql", Body: "SELECT ROW($1)::app.sum", Types: []rewrite.Table{table("app", "sum")}, Gives: []rewrite.Table{table("app", "sum")}},
			{
				Schema: "public", Name: "atomic_count", Kind: catalog.KindFunction, Arguments: "s public.staff DEFAULT NULL::public.staff, f double precision DEFAULT app.pay((1)::double precision)",
				Result: "bigint", Volatility: "stable", Language: "sql",
				Body: "BEGIN ATOMIC\n SELECT count(*) AS count\n    FROM public.users;\nEND", Settings: map[string]string{"search_path": `app, "A b"`},
				Reads: []rewrite.Table{table("public", "staff"), table("public", "users")}, Calls: []rewrite.Table{table("app", "pay")}, Types: []rewrite.Table{table("public", "staff")},
				OfOne: true, OfRow: true, Optional: 2,
			},
			{Schema: "public", Name: "step", Kind: catalog.KindFunction, Arguments: "n bigint, v integer", Result: "bigint", Volatility: "volatile", Language: "plpgsql", Body: "BEGIN RETURN n + 1; END"},
			{Schema: "public", Name: "tally", Kind: catalog.KindAggregate, OfOne: true, Arguments: "integer", Result: "bigint", Volatility: "immutable", Language: "internal", Calls: []rewrite.Table{table("public", "step")}},
		},
		Operators: []catalog.Operator{{Schema: "app", Name: "===", Function: table("app", "same"), Operands: "integer, integer"}},
		Types: []catalog.Type{
			{Schema: "app", Name: "age", Calls: []rewrite.Table{table("app", "pay"), table("app", "same")}},
			{Schema: "app", Name: "sum", Calls: []rewrite.Table{table("app", "to_sum")}},
			{Schema: "app", Name: "_age", Calls: []rewrite.Table{table("app", "pay"), table("app", "same")}},
			{Schema: "app", Name: "_sum", Calls: []rewrite.Table{table("app", "to_sum")}},
			{Schema: "pg_catalog", Name: "int4", Calls: []rewrite.Table{table("app", "to_int")}},
		},
		Casts: []catalog.Cast{
			{From: table("app", "sum"), To: table("pg_catalog", "int4"), Function: table("app", "to_int"), Context: "i"},
			{From: table("pg_catalog", "int4"), To: table("app", "sum"), Function: table("app", "to_sum"), Context: "e"},
		},
		ImplicitCasts: []rewrite.Table{table("app", "to_int")},
		Defaults:      []catalog.Default{{Settings: map[string]string{"search_path": `"$user", public`}}},
	}
	got.Defaults = slices.DeleteFunc(got.Defaults, func(d catalog.Default) bool { return d.Role != "" }) // other tests' roles
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(catalog.Function{}, "Takes"), cmpopts.IgnoreFields(catalog.Catalog{}, "Database", "Denied", "Labels", "System", "Unlisted"), cmpopts.IgnoreFields(catalog.Relation{}, "Definition"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Contains(got.System, "pg_class") || !slices.Contains(got.Unlisted, catalog.Unlisted{Name: "int4in", OfOne: true}) || !slices.Contains(got.Unlisted, catalog.Unlisted{Name: "bernoulli"}) {
		t.Errorf("of pg_catalog: %v, %v", got.System, got.Unlisted)
	}
	if got.Database == "" {
		t.Error("no database name")
	}
	for _, r := range got.Relations { // servers print differently
		switch {
		case (r.Kind == catalog.KindView || r.Kind == catalog.KindMaterialized) != (r.Definition != ""):
			t.Errorf("%s %s has the definition %q", r.Kind, r.Table, r.Definition)
		case r.Name == "paid" && !(strings.Contains(r.Definition, "FROM public.users") && strings.Contains(r.Definition, "OPERATOR(app.===)")):
			t.Errorf("the names of %q have no schemas", r.Definition)
		}
	}
}

// TestReadTypes: the component types of columns, arguments and results, without arrays, domains and rows around them;
// and extensions.
func TestReadTypes(t *testing.T) {
	t.Parallel()
	got := contents(t, database(t, `
		CREATE EXTENSION citext;
		CREATE TYPE public.kind AS ENUM ('a', 'b');
		CREATE DOMAIN public.kinds AS public.kind[];
		CREATE TYPE public.pair AS (k public.kinds, n int);
		CREATE DOMAIN public.word AS text;
		CREATE TYPE public.span AS RANGE (subtype = public.word);
		CREATE TABLE public.held (id int, p public.pair[], w public.word, c citext);
		CREATE FUNCTION public.f(a int, b public.kinds, c public.word, VARIADIC d public.kind[]) RETURNS public.pair LANGUAGE sql AS 'SELECT NULL::public.pair';
		CREATE FUNCTION public.g(a public.pair, b citext DEFAULT 'x') RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION public.to_kind(int) RETURNS public.kind LANGUAGE sql AS $$ SELECT 'a'::public.kind $$;
		CREATE CAST (int AS public.kind) WITH FUNCTION public.to_kind(int) AS IMPLICIT;`))
	table := func(name string) rewrite.Table { return rewrite.Table{Schema: "public", Name: name} }
	for _, r := range got.Relations {
		want := []rewrite.Table{table("_pair"), table("citext"), table("kind"), table("kinds"), table("pair"), table("word")}
		if diff := cmp.Diff(want, slices.DeleteFunc(r.Types, func(t rewrite.Table) bool { return t == table("_kind") })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.Table, diff)
		}
	}
	functions := map[string]catalog.Function{}
	for _, f := range got.Functions {
		functions[f.Name] = f
	}
	f, g := functions["f"], functions["g"]
	if diff := cmp.Diff([]rewrite.Table{{}, table("kind"), {}, table("kind")}, f.Takes); diff != "" || !f.Variadic || f.Optional != 0 {
		t.Errorf("f: variadic %v, optional %d (-want +got):\n%s", f.Variadic, f.Optional, diff)
	}
	if !slices.Contains(f.Gives, table("pair")) || !slices.Contains(f.Gives, table("kind")) {
		t.Errorf("f gives %v; want pair and what it holds", f.Gives)
	}
	if diff := cmp.Diff([]rewrite.Table{{}, table("citext")}, g.Takes); diff != "" || g.Variadic || g.Optional != 1 || g.Extension != "" {
		t.Errorf("g: %+v (-want +got):\n%s", g, diff)
	}
	if functions["citext_eq"].Extension != "citext" {
		t.Errorf("citext_eq is of extension %q", functions["citext_eq"].Extension)
	}
	if diff := cmp.Diff([]catalog.Coercion{{To: table("kind")}}, got.Coercions); diff != "" {
		t.Errorf("coercions (-want +got):\n%s", diff)
	}
	types := map[string][]rewrite.Table{}
	for _, typ := range got.Types {
		types[typ.Name] = typ.Holds
	}
	if held := types["pair"]; !slices.Contains(held, table("kind")) {
		t.Errorf("pair holds %v; want kind", held)
	}
	if held := types["span"]; !slices.Contains(held, table("word")) {
		t.Errorf("span holds %v; want word", held)
	}
}

// TestRoles: defaults come in order of increasing precedence, and the roles that may not use a schema are listed.
func TestRoles(t *testing.T) {
	t.Parallel()
	dsn := database(t, `
		CREATE SCHEMA closed;
		CREATE ROLE catalog_ann LOGIN; CREATE ROLE catalog_bob LOGIN;
		GRANT USAGE ON SCHEMA closed TO catalog_bob;
		ALTER ROLE catalog_ann SET search_path = everywhere;
		ALTER ROLE catalog_ann SET dp.epsilon = '0.5';
		DO $$ BEGIN
			EXECUTE format('ALTER ROLE catalog_ann IN DATABASE %I SET search_path = here, "A b"', current_database());
			EXECUTE format('ALTER DATABASE %I SET search_path = weak', current_database());
		END $$`)
	got := contents(t, dsn)
	alone := read.Defaults(dsn, time.Minute)
	for range 2 { // with one connection
		if defaults, err := alone(t.Context()); err != nil || !cmp.Equal(got.Defaults, defaults) {
			t.Errorf("read alone: %v, %v", err, cmp.Diff(got.Defaults, defaults))
		}
	}
	var ann []catalog.Default
	for _, d := range got.Defaults {
		if d.Role == "catalog_ann" || d.Role == "" {
			ann = append(ann, d)
		}
	}
	want := []catalog.Default{
		{Settings: map[string]string{"search_path": "weak"}},
		{Role: "catalog_ann", Settings: map[string]string{"search_path": "everywhere", "dp.epsilon": "0.5"}},
		{Role: "catalog_ann", Settings: map[string]string{"search_path": `here, "A b"`}},
	}
	if diff := cmp.Diff(want, ann); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	denied := map[string]bool{}
	for _, d := range got.Denied {
		if d.Schema == "closed" {
			denied[d.Role] = true
		}
	}
	if !denied["catalog_ann"] || denied["catalog_bob"] {
		t.Errorf("denied %v; want ann and not bob", got.Denied)
	}
}

// TestSchemas: schemas that exist are returned, with the right of the session's role to use them.
func TestSchemas(t *testing.T) {
	t.Parallel()
	dsn := database(t, `CREATE SCHEMA "Open"; CREATE SCHEMA closed; CREATE ROLE catalog_eve; GRANT USAGE ON SCHEMA "Open" TO catalog_eve`)
	conn := pgtest.Connect(t, dsn)
	if _, err := conn.Exec(t.Context(), "SET ROLE catalog_eve"); err != nil {
		t.Fatal(err)
	}
	got, err := read.Schemas(t.Context(), conn, "Open", "open", "closed", "pg_catalog", "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{"Open": true, "closed": false, "pg_catalog": true}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err = read.Schemas(t.Context(), conn); err != nil || len(got) != 0 {
		t.Errorf("no names: %v, %v", got, err)
	}
}

// TestNobodySlipsAFunctionIn: user-defined objects with names of the catalog's own change nothing.
func TestNobodySlipsAFunctionIn(t *testing.T) {
	t.Parallel()
	dsn := database(t, `
		CREATE TABLE public.pg_class (oid oid, relname text);
		CREATE FUNCTION public.current_database() RETURNS name LANGUAGE sql AS $$ SELECT 'evil'::name $$;
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$`)
	if got := contents(t, dsn); got.Database == "evil" || len(got.Relations) != 1 {
		t.Errorf("database %q, relations %v; want the real name and one relation", got.Database, got.Relations)
	}
}

func TestReadFaults(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for name, dsn := range map[string]string{
		"not a connection string": "postgres://u:" + secret + "@:::::",
		"nobody listens":          "postgres://u:" + secret + "@127.0.0.1:1/x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := read.Catalog(t.Context(), dsn, 10*time.Second)
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%v; want an error without the password", err)
			}
		})
	}
}
