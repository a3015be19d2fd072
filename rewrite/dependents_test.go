package rewrite_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

func table(schema, name string) rewrite.Table { return rewrite.Table{Schema: schema, Name: name} }

func relation(kind catalog.RelationKind, schema, name string, reads ...rewrite.Table) catalog.Relation {
	return catalog.Relation{Table: table(schema, name), Kind: kind, Reads: reads}
}

// catalogOptions returns options with the catalogs of a small engine and its shadow database.
func catalogOptions() rewrite.Options {
	copies := func(schema string) []catalog.Relation {
		return []catalog.Relation{
			relation(catalog.KindTable, schema, "users"),
			relation(catalog.KindTable, schema, "transactions"),
			relation(catalog.KindPartitioned, schema, "events", table(schema, "events_1")),
			relation(catalog.KindTable, schema, "events_1"),
			relation(catalog.KindView, schema, "good_view", table(schema, "users"), table("public", "stores")),
			relation(catalog.KindView, schema, "leaky_view", table(schema, "users"), table("d0", "users")),
			relation(catalog.KindView, schema, "secured_view", table(schema, "users")),
			relation(catalog.KindView, schema, "outside_view", table(schema, "users"), table("public", "audit_log")),
			relation(catalog.KindForeign, schema, "far_view"),
			{Table: table(schema, "calling_view"), Kind: catalog.KindView, Calls: []rewrite.Table{table("public", "spy")}},
			{Table: table(schema, "safe_calling_view"), Kind: catalog.KindView, Calls: []rewrite.Table{table("public", "clip")}},
		}
	}
	view := func(name string) catalog.Relation {
		return relation(catalog.KindView, "public", name, table("public", "users"))
	}
	users, protectedRows := relation(catalog.KindTable, "public", "users"), relation(catalog.KindTable, "public", "secured")
	protectedRows.RowSecurity = true
	source := &catalog.Catalog{
		Database: "shop", Schemas: []string{"public", "app", "closed", "alice"},
		Relations: []catalog.Relation{
			users, protectedRows,
			relation(catalog.KindTable, "public", "transactions"),
			relation(catalog.KindPartitioned, "public", "events", table("public", "events_1"), table("public", "events_2")),
			relation(catalog.KindTable, "public", "events_1"), relation(catalog.KindTable, "public", "events_2"),
			relation(catalog.KindTable, "public", "stores"),
			relation(catalog.KindView, "public", "store_list", table("public", "users")),
			view("good_view"), view("leaky_view"), view("outside_view"), view("far_view"), view("calling_view"),
			view("safe_calling_view"), view("lonely_view"),
			{Table: table("public", "prices"), Kind: catalog.KindTable, RowSecurity: true},
			relation(catalog.KindView, "public", "secured_view", table("public", "secured"), table("public", "users")),
			relation(catalog.KindView, "public", "view_of_view", table("public", "good_view")),
			relation(catalog.KindView, "app", "users", table("public", "users")),
			relation(catalog.KindTable, "public", "audit_log"),
			relation(catalog.KindSequence, "public", "users_id_seq"),
			relation(catalog.KindTable, "closed", "transactions"),
		},
		Functions: []catalog.Function{
			{Schema: "public", Name: "clip", Volatility: "immutable", Language: "sql", Body: "SELECT least($2, $1)"},
			{Schema: "public", Name: "spy", Volatility: "volatile", Language: "plpgsql", Body: "BEGIN RETURN 1; END"},
			{Schema: "public", Name: "round", Volatility: "immutable", Language: "c"},
			{Schema: "public", Name: "count_users", Volatility: "stable", Language: "sql", Body: "SELECT count(*) FROM Users"},
			{Schema: "public", Name: "count_atomic", Volatility: "stable", Language: "sql", Reads: []rewrite.Table{table("public", "users")}},
			{Schema: "app", Name: "lower", Volatility: "immutable", Language: "sql"},
		},
		Defaults: []catalog.Default{
			{Settings: map[string]string{"search_path": `"$user", public`, "TimeZone": "UTC"}},
			{Role: "bob", Settings: map[string]string{"search_path": "app, public", "dp.epsilon": "0.5"}},
			{Role: "latin", Settings: map[string]string{"client_encoding": "LATIN1"}},
		},
		Denied: []catalog.Denial{{Role: "alice", Schema: "closed"}},
	}
	return rewrite.Options{
		Protected: []rewrite.Table{table("public", "users"), table("public", "transactions"), table("public", "events"), table("public", "secured")},
		Public:    []rewrite.Table{table("public", "stores"), table("public", "store_list"), table("public", "ghost"), table("public", "prices")},
		Source:    source,
		Shadow: &catalog.Catalog{
			Database: "shadow", Schemas: []string{"d0", "d1", "public"},
			Relations: slices.Concat(copies("d0"), copies("d1"), []catalog.Relation{relation(catalog.KindTable, "public", "stores")}),
		},
		Neighbours:     []string{"d0", "d1"},
		AllowFunctions: []string{"clip", "count_users", "count_atomic"},
	}
}

// TestCatalog: decisions that depend on a catalog, with the text on d0 or the reason of the refusal.
func TestCatalog(t *testing.T) {
	t.Parallel()
	r := newRewriter(t, catalogOptions())
	for name, c := range map[string]struct {
		sql, user, path string
		want            string // SQL on d0
		reason          rewrite.Reason
	}{
		"table":                                   {sql: "SELECT * FROM users", want: `SELECT * FROM "d0".users`},
		"schema of the user exists and is empty":  {sql: "SELECT * FROM users", path: `"$user", public`, want: `SELECT * FROM "d0".users`},
		"schema of the path does not exist":       {sql: "SELECT * FROM users", path: "nowhere, public", want: `SELECT * FROM "d0".users`},
		"schema that the role may not use":        {sql: "SELECT * FROM transactions", path: "closed, public", want: `SELECT * FROM "d0".transactions`},
		"information_schema first":                {sql: "SELECT * FROM users", path: "information_schema, public", reason: reasons.AmbiguousName},
		"information_schema behind":               {sql: "SELECT * FROM users", path: "public, information_schema", want: `SELECT * FROM "d0".users`},
		"information_schema first, qualified":     {sql: "SELECT * FROM public.users", path: "information_schema, public", want: `SELECT * FROM "d0".users`},
		"schemas of the server that hold nothing": {sql: "SELECT * FROM users", path: "pg_toast, pg_temp, public", want: `SELECT * FROM "d0".users`},
		"schema that another role may use":        {sql: "SELECT * FROM public.users, transactions", user: "carol", path: "closed, public", reason: reasons.UnknownTable},
		"role's own search_path":                  {sql: "SELECT * FROM users", user: "bob", reason: reasons.NoCopy},
		"role's own encoding":                     {sql: "SELECT * FROM users", user: "latin", reason: reasons.InvalidEncoding},
		"listed, but not in the database":         {sql: "SELECT * FROM users, ghost", reason: reasons.UnknownTable},
		"partition without a copy":                {sql: "SELECT * FROM events_2", reason: reasons.NoCopy},
		"partition with a copy":                   {sql: "SELECT * FROM events_1", want: `SELECT * FROM "d0".events_1`},
		"partitioned table":                       {sql: "SELECT * FROM events", want: `SELECT * FROM "d0".events`},
		"view with copies":                        {sql: "SELECT good_view.id FROM good_view", want: `SELECT good_view.id FROM "d0".good_view`},
		"view with copies, three parts":           {sql: "SELECT public.good_view.id FROM public.good_view", want: `SELECT "d0".good_view.id FROM "d0".good_view`},
		"view whose copy reads another world":     {sql: "SELECT * FROM leaky_view", reason: reasons.NoCopy},
		"view whose copy reads outside":           {sql: "SELECT * FROM outside_view", reason: reasons.NoCopy},
		"view whose copy is a foreign table":      {sql: "SELECT * FROM far_view", reason: reasons.NoCopy},
		"view whose copy calls a function":        {sql: "SELECT * FROM calling_view", reason: reasons.NoCopy},
		"view whose copy calls a safe function":   {sql: "SELECT * FROM safe_calling_view", want: `SELECT * FROM "d0".safe_calling_view`},
		"view without copies":                     {sql: "SELECT * FROM lonely_view", reason: reasons.NoCopy},
		"view of a view":                          {sql: "SELECT * FROM view_of_view", reason: reasons.NoCopy},
		"view called like a protected table":      {sql: "SELECT * FROM app.users", reason: reasons.NoCopy},
		"listed as public, reads a protected":     {sql: "SELECT * FROM store_list", reason: reasons.NoCopy},
		"row security":                            {sql: "SELECT * FROM secured", reason: reasons.SessionDependent},
		"row security below a view":               {sql: "SELECT * FROM secured_view", reason: reasons.SessionDependent},
		"row security of a public table":          {sql: "SELECT * FROM users, prices", reason: reasons.SessionDependent},
		"unlisted table":                          {sql: "SELECT * FROM users, audit_log", reason: reasons.UnknownTable},
		"sequence":                                {sql: "SELECT last_value FROM users_id_seq, users", reason: reasons.UnknownTable},
		"row type of a view":                      {sql: "SELECT NULL::good_view FROM users", reason: reasons.RowType},
		"safe function":                           {sql: "SELECT clip(1, 2) FROM users", want: `SELECT clip(1, 2) FROM "d0".users`},
		"unlisted function":                       {sql: "SELECT spy() FROM users", reason: reasons.UnknownFunction},
		"safe function that reads a table":        {sql: "SELECT count_users() FROM users", reason: reasons.NoCopy},
		"safe function that reads, atomic":        {sql: "SELECT public.count_atomic() FROM users", reason: reasons.NoCopy},
		"overload of a built-in function":         {sql: "SELECT round(1.5) FROM users", reason: reasons.UnknownFunction},
		"built-in function, qualified":            {sql: "SELECT pg_catalog.round(1.5) FROM users", want: `SELECT pg_catalog.round(1.5) FROM "d0".users`},
		"overload in a schema not in the path":    {sql: "SELECT lower('X') FROM users", want: `SELECT lower('X') FROM "d0".users`},
		"no business of the auditor":              {sql: "SELECT * FROM audit_log", reason: reasons.NoProtectedTable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := capture.Query{SQL: c.sql, User: c.user, Database: "shop"}
			if q.User == "" {
				q.User = "alice"
			}
			if c.path != "" {
				q.Settings = map[string]string{"search_path": c.path}
			}
			plan, err := r.Analyze(q)
			if c.reason != "" {
				if err == nil {
					t.Fatalf("not refused; tables %v", plan.Tables)
				}
				if got := reasonOf(t, err); got != c.reason {
					t.Errorf("refused as %s, want %s: %v", got, c.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := plan.For("d0")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPathOfTheServer: a replay must not find, in the shadow database, schemas that the engine's server skips in a
// path.
func TestPathOfTheServer(t *testing.T) {
	t.Parallel()
	r := newRewriter(t, catalogOptions())
	for user, want := range map[string][]string{"alice": {"alice", "public", "pg_temp", "app"}, "carol": {"closed", "public", "pg_temp", "app"}} {
		plan, err := r.Analyze(capture.Query{
			SQL: "SELECT clip(1, 2) FROM public.users", User: user, Database: "shop",
			Settings: map[string]string{"search_path": `"$user", closed, d0, public, pg_temp, app, nowhere`},
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, plan.SearchPath); diff != "" {
			t.Errorf("%s (-want +got):\n%s", user, diff)
		}
	}
}

func TestCatalogOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	_, err := newRewriter(t, catalogOptions()).Analyze(capture.Query{SQL: "SELECT * FROM users", Database: "mall"})
	if err == nil || reasonOf(t, err) != reasons.OtherDatabase {
		t.Errorf("%v; want %s", err, reasons.OtherDatabase)
	}
}

// TestCatalogDefaults: a role's settings are in the plan, below those of the session.
func TestCatalogDefaults(t *testing.T) {
	t.Parallel()
	q := capture.Query{SQL: "SELECT count(*) FROM public.users", User: "bob", Database: "shop"}
	r := newRewriter(t, catalogOptions())
	plan, err := r.Analyze(q)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Claim == nil || plan.Claim.Epsilon != 0.5 || !slices.Equal(plan.SearchPath, []string{"app", "public"}) {
		t.Errorf("claim %+v under %v; want the role's 0.5 under app, public", plan.Claim, plan.SearchPath)
	}
	q.Settings = map[string]string{"dp.epsilon": "2", "search_path": "public"}
	if plan, err = r.Analyze(q); err != nil {
		t.Fatal(err)
	}
	if plan.Claim == nil || plan.Claim.Epsilon != 2 || !slices.Equal(plan.SearchPath, []string{"public"}) {
		t.Errorf("claim %+v under %v; want the session's 2 under public", plan.Claim, plan.SearchPath)
	}
}

// TestCatalogNamesVolatility: the refusal of a function includes its volatility and language.
func TestCatalogNamesVolatility(t *testing.T) {
	t.Parallel()
	_, err := newRewriter(t, catalogOptions()).Analyze(capture.Query{SQL: "SELECT spy() FROM users", User: "alice", Database: "shop"})
	var refusal *rewrite.UnsupportedError
	if !errors.As(err, &refusal) || refusal.Detail != "function spy (volatile, plpgsql) is neither built in nor declared safe" || refusal.Offset != 7 {
		t.Errorf("%v; want function spy (volatile, plpgsql) at 7", err)
	}
}

// TestViewCountsAsItsTables: rules by table apply to the views over it.
func TestViewCountsAsItsTables(t *testing.T) {
	t.Parallel()
	plan, err := newRewriter(t, catalogOptions()).Analyze(capture.Query{SQL: "SELECT * FROM good_view", User: "alice", Database: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]rewrite.Table{table("public", "good_view"), table("public", "users")}, plan.Tables); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestShadowAlone: without the engine's catalog, the copies and the functions of the shadow database are still checked.
func TestShadowAlone(t *testing.T) {
	t.Parallel()
	o := catalogOptions()
	o.Shadow.Functions, o.Source = o.Source.Functions, nil
	o.Protected = append(o.Protected, table("public", "leaky_view"), table("public", "good_view"))
	o.Shadow.Relations = append(o.Shadow.Relations, relation(catalog.KindView, "public", "store_list", table("d0", "users")))
	r := newRewriter(t, o)
	for sql, want := range map[string]rewrite.Reason{
		"SELECT * FROM good_view":                 "",
		"SELECT * FROM leaky_view":                reasons.NoCopy,
		"SELECT * FROM users, store_list":         reasons.NoCopy,
		"SELECT count_users() FROM users":         reasons.NoCopy,
		"SELECT clip(1, 2) FROM users":            "",
		"SELECT trunc(1.5), count(*) FROM events": "",
		"SELECT round(1.5), count(*) FROM events": reasons.UnknownFunction, // a replay would find public.round
	} {
		_, err := r.Analyze(capture.Query{SQL: sql, User: "alice"})
		if want == "" && err != nil || want != "" && (err == nil || reasonOf(t, err) != want) {
			t.Errorf("%s: %v; want %q", sql, err, want)
		}
	}
}

func allowing(o rewrite.Options, functions ...string) rewrite.Options {
	o.AllowFunctions = append(slices.Clone(o.AllowFunctions), functions...)
	return o
}

func TestAssumed(t *testing.T) {
	t.Parallel()
	pure := options()
	withSetter := catalogOptions()
	withSetter.Source.Functions = append(withSetter.Source.Functions,
		catalog.Function{Schema: "app", Name: "enter", Volatility: "volatile", Language: "plpgsql", Body: "BEGIN PERFORM Set_Config('search_path', $1, false); END"})
	withOpaque := allowing(catalogOptions(), "dynamic", "in_c", "calls_dynamic")
	withOpaque.Source.Functions = append(withOpaque.Source.Functions,
		catalog.Function{Schema: "public", Name: "dynamic", Volatility: "stable", Language: "plpgsql", Body: "DECLARE n int; BEGIN EXECUTE 'SELECT count(*) FROM ' || $1 INTO n; RETURN n; END"},
		catalog.Function{Schema: "public", Name: "calls_dynamic", Volatility: "stable", Language: "sql", Body: "SELECT public.dynamic('stores')"},
		catalog.Function{Schema: "public", Name: "in_c", Volatility: "volatile", Language: "c"})
	for name, c := range map[string]struct {
		options rewrite.Options
		query   capture.Query
		want    []string
	}{
		"pure": {
			pure,
			capture.Query{SQL: "SELECT lower(users.name) FROM users"},
			[]string{rewrite.AssumedLists, rewrite.AssumedPath, rewrite.AssumedTemp, rewrite.AssumedBuiltin, rewrite.AssumedCopies, rewrite.AssumedAttribute},
		},
		"pure, qualified": {
			pure, capture.Query{SQL: "SELECT id FROM public.users"}, []string{rewrite.AssumedLists, rewrite.AssumedCopies},
		},
		"pure, the session's path": {
			pure,
			capture.Query{SQL: "SELECT id FROM users", Settings: map[string]string{"search_path": "public"}},
			[]string{rewrite.AssumedLists, rewrite.AssumedTemp, rewrite.AssumedCopies},
		},
		"catalogs": {
			catalogOptions(), capture.Query{SQL: "SELECT lower(name) FROM users"}, []string{rewrite.AssumedTemp},
		},
		"catalogs, a function that changes settings, not called": {
			withSetter, capture.Query{SQL: "SELECT lower(name) FROM users"}, []string{rewrite.AssumedTemp},
		},
		"catalogs, a function that changes settings, called": {
			withSetter, capture.Query{SQL: "SELECT id FROM public.users", Doubt: called("enter")}, nil,
		},
		"catalogs, a function in C called": {
			withOpaque, capture.Query{SQL: "SELECT id FROM public.users", Doubt: called("in_c")}, []string{rewrite.AssumedSetters},
		},
		"catalogs, a declared function with dynamic SQL called": {
			withOpaque, capture.Query{SQL: "SELECT id FROM public.users", Doubt: called("dynamic")}, []string{rewrite.AssumedSetters},
		},
		"catalogs, unknown code": {
			catalogOptions(), capture.Query{SQL: "SELECT id FROM public.users", Doubt: capture.AnySetting()}, []string{rewrite.AssumedSettings},
		},
		"pure, a function called": {
			pure, capture.Query{SQL: "SELECT id FROM public.users", Doubt: called("f")}, []string{rewrite.AssumedLists, rewrite.AssumedCopies, rewrite.AssumedSetters},
		},
		"pure, declared functions": {
			allowing(pure, "top_orders", "clip"),
			capture.Query{SQL: "SELECT clip(n, 1) FROM public.users, top_orders(5) AS t(n)"},
			[]string{rewrite.AssumedLists, rewrite.AssumedCopies, rewrite.AssumedFunction("clip"), rewrite.AssumedFunction("top_orders")},
		},
		"catalogs, a function whose body is known": {catalogOptions(), capture.Query{SQL: "SELECT public.clip(id, 1) FROM public.users"}, nil},
		"catalogs, functions whose bodies say little": {
			withOpaque,
			capture.Query{SQL: "SELECT public.dynamic('x'), public.in_c(1), public.calls_dynamic() FROM public.users"},
			[]string{rewrite.AssumedFunction("public.calls_dynamic"), rewrite.AssumedFunction("public.dynamic"), rewrite.AssumedFunction("public.in_c")},
		},
		"catalogs, qualified": {catalogOptions(), capture.Query{SQL: "SELECT id FROM public.users"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.query.User, c.query.Database = "alice", "shop"
			plan, err := newRewriter(t, c.options).Analyze(c.query)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, plan.Assumed); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
