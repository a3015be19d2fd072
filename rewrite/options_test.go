package rewrite_test

import (
	"math"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

func TestNewFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*rewrite.Options)
		want   string
	}{
		"nothing protected": {func(o *rewrite.Options) { o.Protected = nil }, "no protected table"},
		"no schema":         {func(o *rewrite.Options) { o.Protected[0].Schema = "" }, "schema: is empty"},
		"no name":           {func(o *rewrite.Options) { o.Public[0].Name = "" }, "name: is empty"},
		"long name":         {func(o *rewrite.Options) { o.Protected[0].Name = strings.Repeat("x", 64) }, "longer than 63 bytes"},
		"system schema":     {func(o *rewrite.Options) { o.Protected[0].Schema = "pg_catalog" }, "system schema"},
		"catalog-like name": {func(o *rewrite.Options) { o.Protected[0].Name = "pg_class" }, "a system catalog may hide the table"},
		"two of one name": {func(o *rewrite.Options) {
			o.Protected = append(o.Protected, rewrite.Table{Schema: "old", Name: "users"})
		}, "have the same name"},
		"protected and public":     {func(o *rewrite.Options) { o.Public = append(o.Public, o.Protected[0]) }, "listed as protected and as public"},
		"allowed function":         {func(o *rewrite.Options) { o.AllowFunctions = []string{"a.b.c"} }, `allowed function "a.b.c"`},
		"signature":                {func(o *rewrite.Options) { o.Claims.Signatures[0].Function = "" }, `DP function ""`},
		"combine":                  {func(o *rewrite.Options) { o.Claims.Combine = "max" }, `combine "max"`},
		"rule's epsilon":           {func(o *rewrite.Options) { o.Claims.Rules = []rewrite.Rule{{Name: "r", Epsilon: -1}} }, "claim rule 1 (r): epsilon is negative"},
		"rule's pattern":           {func(o *rewrite.Options) { o.Claims.Rules = []rewrite.Rule{{Pattern: "("}} }, "missing closing"},
		"rule's table":             {func(o *rewrite.Options) { o.Claims.Rules = []rewrite.Rule{{Table: o.Public[0]}} }, "is not a protected table"},
		"default's delta":          {func(o *rewrite.Options) { o.Claims.Default = &rewrite.Claim{Delta: math.NaN()} }, "default claim: delta"},
		"negative limit":           {func(o *rewrite.Options) { o.MaxBytes = -1 }, "must not be negative"},
		"all faults, not only one": {func(o *rewrite.Options) { o.MaxBytes, o.Claims.Combine = -1, "x" }, "combine \"x\": use add or share\nMaxBytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			c.change(&o)
			r, err := rewrite.New(o)
			if err == nil || r != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestSearchPathValues parses values of search_path like the server.
func TestSearchPathValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value string
		want  string // the path, joined with |; "refused" = not a path
	}{
		"one":                 {"public", "public"},
		"folded":              {"Public, APP", "public|app"},
		"quoted keeps case":   {`public, "APP"`, "public|APP"},
		"quote in quotes":     {`public,"a""b"`, `public|a"b`},
		"comma in quotes":     {`public, "a, b"`, "public|a, b"},
		"spaces":              {" public\t,\n app ", "public|app"},
		"user":                {`"$user", public`, "alice|public"},
		"not ASCII":           {"public, Größe", "public|größe"},
		"long names are cut":  {"public, " + strings.Repeat("x", 70), "public|" + strings.Repeat("x", 63)},
		"cut between runes":   {"public, " + strings.Repeat("x", 62) + "ü", "public|" + strings.Repeat("x", 62)},
		"open quote":          {`public, "app`, "refused"},
		"trailing comma":      {"public,", "refused"},
		"two words":           {"public app", "refused"},
		"text after a quote":  {`"public"x`, "refused"},
		"default, a keyword":  {"DEFAULT", "refused"},
		"quote within a word": {`pub"lic`, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := newRewriter(t, options()).Analyze(capture.Query{
				SQL: "SELECT count(*) FROM users", User: "alice", Database: "shop", Settings: map[string]string{"search_path": c.value},
			})
			if c.want == "refused" {
				if err == nil || reasonOf(t, err) != reasons.SettingsUncertain {
					t.Errorf("%v, want %s", err, reasons.SettingsUncertain)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			// The server folds only ASCII; Go's strings.ToLower would fold more.
			if got := strings.Join(plan.SearchPath, "|"); got != c.want {
				t.Errorf("path %q, want %q", got, c.want)
			}
		})
	}
}

// TestDeclarations: the scope of a declaration of a function or a relation.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*rewrite.Options)
		query  capture.Query
		want   rewrite.Reason // "" = analysed
		calls  int
	}{
		"volatile function allowed by name": {
			change: func(o *rewrite.Options) { o.AllowFunctions = []string{"setseed"} },
			query:  capture.Query{SQL: "SELECT setseed(0.5) FROM users"},
		},
		"function that takes a name stays refused": {
			change: func(o *rewrite.Options) { o.AllowFunctions = []string{"nextval"} },
			query:  capture.Query{SQL: "SELECT nextval('s') FROM users"}, want: reasons.SideEffects,
		},
		"function that reads a name stays refused": {
			change: func(o *rewrite.Options) { o.AllowFunctions = []string{"to_regclass"} },
			query:  capture.Query{SQL: "SELECT to_regclass('users') FROM users"}, want: reasons.UnsafeFunction,
		},
		"qualified declaration, unqualified call, schema in the path": {
			query: capture.Query{SQL: "SELECT bucket(id) FROM users", Settings: map[string]string{"search_path": "public, util"}},
		},
		"qualified declaration, unqualified call, schema not in the path": {
			query: capture.Query{SQL: "SELECT bucket(id) FROM users"}, want: reasons.UnknownFunction,
		},
		"unqualified declaration, qualified call": {query: capture.Query{SQL: "SELECT any_schema.clip(id) FROM users"}},
		"signature by the path": {
			query: capture.Query{SQL: "SELECT noisy(id, 1, 0) FROM users", Settings: map[string]string{"search_path": "public, dp"}}, calls: 1,
		},
		"signature of another schema": {
			query: capture.Query{SQL: "SELECT other.noisy(id, 1, 0) FROM users"}, want: reasons.UnknownFunction,
		},
		"unqualified user function under uncertain settings": {
			query: capture.Query{SQL: "SELECT anon_count(id, 1) FROM public.users", Doubt: capture.AnySetting()}, want: reasons.SettingsUncertain,
		},
		"quoted upper case is another function": {
			query: capture.Query{SQL: `SELECT "Clip"(id) FROM users`}, want: reasons.UnknownFunction,
		},
		"sampling method allowed by name": {
			change: func(o *rewrite.Options) { o.AllowFunctions = []string{"system_rows"} },
			query:  capture.Query{SQL: "SELECT 1 FROM users TABLESAMPLE system_rows(3)"},
		},
		"a known relation earlier in the path shadows": {
			change: func(o *rewrite.Options) {
				o.Others = append(o.Others, rewrite.Table{Schema: "tenant", Name: "users"})
			},
			query: capture.Query{SQL: "SELECT 1 FROM users", Settings: map[string]string{"search_path": "tenant, public"}}, want: reasons.UnknownTable,
		},
		"a schema that is listed does not hide": {
			change: func(o *rewrite.Options) {
				o.Others = append(o.Others, rewrite.Table{Schema: "tenant", Name: "orders"})
			},
			query: capture.Query{SQL: "SELECT 1 FROM users", Settings: map[string]string{"search_path": "tenant, public"}},
		},
		"pg_catalog first, though a table could be called so": {
			query: capture.Query{SQL: "SELECT 1 FROM pg_class"}, want: reasons.SystemCatalogOnly,
		},
		"another database": {
			query: capture.Query{SQL: "SELECT 1 FROM users", Database: "mall"}, want: reasons.OtherDatabase,
		},
		"any database, unqualified": {
			change: func(o *rewrite.Options) { o.Database = "" },
			query:  capture.Query{SQL: "SELECT 1 FROM users", Database: "mall"},
		},
		"any database, qualified with it": {
			change: func(o *rewrite.Options) { o.Database = "" },
			query:  capture.Query{SQL: "SELECT 1 FROM mall.public.users", Database: "mall"},
		},
		"any database, qualified with another": {
			change: func(o *rewrite.Options) { o.Database = "" },
			query:  capture.Query{SQL: "SELECT 1 FROM shop.public.users", Database: "mall"}, want: reasons.AmbiguousName,
		},
		"limit of tokens": {
			change: func(o *rewrite.Options) { o.MaxTokens = 4 },
			query:  capture.Query{SQL: "SELECT 1 FROM public.users"}, want: reasons.TooLarge,
		},
		"limit of bytes": {
			change: func(o *rewrite.Options) { o.MaxBytes = 18 },
			query:  capture.Query{SQL: "SELECT 1 FROM users"}, want: reasons.TooLarge,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			if c.change != nil {
				c.change(&o)
			}
			plan, err := newRewriter(t, o).Analyze(c.query)
			switch {
			case err == nil && c.want != "":
				t.Errorf("analysed, want %s", c.want)
			case err != nil && c.want == "":
				t.Error(err)
			case err != nil && reasonOf(t, err) != c.want:
				t.Errorf("refused as %s, want %s", reasonOf(t, err), c.want)
			case err == nil && plan.DPCalls != c.calls:
				t.Errorf("%d DP calls, want %d", plan.DPCalls, c.calls)
			}
		})
	}
}
