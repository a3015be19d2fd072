package rewrite_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite"
)

// TestNames: what the auditor reports to the relay are the listed tables, all that reads them, and the declared
// functions.
func TestNames(t *testing.T) {
	t.Parallel()
	base := func() rewrite.Options {
		sql := func(name, body string, calls ...rewrite.Table) catalog.Function {
			return catalog.Function{Schema: "public", Name: name, Volatility: "stable", Language: "sql", Body: body, Calls: calls}
		}
		return rewrite.Options{
			Protected: []rewrite.Table{table("public", "users"), table("app", "Visits")},
			Source: &catalog.Catalog{
				Database: "shop", Schemas: []string{"public", "app"},
				Relations: []catalog.Relation{
					relation(catalog.KindTable, "public", "users"),
					relation(catalog.KindPartitioned, "app", "Visits", table("app", "visits_2026")),
					relation(catalog.KindTable, "app", "visits_2026"),
					relation(catalog.KindView, "public", "recent", table("app", "visits_2026")),
					relation(catalog.KindMaterialized, "app", "summary", table("public", "recent")),
					relation(catalog.KindTable, "public", "stores"),
					relation(catalog.KindTable, "public", "log_users"),
					{Table: table("public", "headline"), Kind: catalog.KindView, Calls: []rewrite.Table{table("public", "headcount")}},
				},
				Functions: []catalog.Function{
					sql("headcount", "SELECT count(*) FROM users"),
					sql("twice", "SELECT 2 * headcount()"),
					sql("shops", "SELECT count(*) FROM stores"),
					{Schema: "public", Name: "noisy", Volatility: "volatile", Language: "c"},
				},
			},
			Claims: rewrite.ClaimRules{Signatures: []rewrite.Signature{{Function: "noisy", Epsilon: -1}}},
		}
	}
	want := []string{"Visits", "headcount", "headline", "noisy", "recent", "summary", "twice", "users", "visits_2026"}
	for name, c := range map[string]struct {
		change func(*rewrite.Options)
		want   []string
		ok     bool
	}{
		"the catalog":                  {func(*rewrite.Options) {}, want, true},
		"no catalog":                   {func(o *rewrite.Options) { o.Source = nil }, nil, false},
		"the shadow's catalog instead": {func(o *rewrite.Options) { o.Shadow, o.Source = o.Source, nil }, want, true},
		"every table":                  {func(o *rewrite.Options) { o.Protected = []rewrite.Table{table("public", rewrite.AnyTable)} }, nil, true},
		"every function":               {func(o *rewrite.Options) { o.AllowFunctions = []string{rewrite.AnyFunction} }, nil, true},
		"an operator that reads": {func(o *rewrite.Options) {
			o.Source.Operators = []catalog.Operator{{Schema: "public", Name: "##", Function: table("public", "twice")}}
		}, append([]string{"##"}, want...), true},
		"an operator that syntax implies": {func(o *rewrite.Options) {
			o.Source.Operators = []catalog.Operator{{Schema: "public", Name: "=", Function: table("public", "twice")}}
		}, nil, true},
		"an operator that does not": {func(o *rewrite.Options) {
			o.Source.Operators = []catalog.Operator{{Schema: "public", Name: "##", Function: table("public", "shops")}}
		}, want, true},
		"a type that reads": {func(o *rewrite.Options) {
			o.Source.Types = []catalog.Type{{Schema: "public", Name: "total", Calls: []rewrite.Table{table("public", "headcount")}}, {Schema: "public", Name: "totals", Holds: []rewrite.Table{table("public", "total")}}}
			o.Source.Relations[5].Types = []rewrite.Table{table("public", "totals")}
		}, []string{"Visits", "headcount", "headline", "noisy", "recent", "stores", "summary", "total", "totals", "twice", "users", "visits_2026"}, true},
		"a cast that reads": {func(o *rewrite.Options) { o.Source.ImplicitCasts = []rewrite.Table{table("public", "headcount")} }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := base()
			c.change(&o)
			names, ok := newRewriter(t, o).Names()
			got := slices.DeleteFunc(names.Reaching, func(name string) bool { return strings.Contains(name, "_to_xml") || strings.HasPrefix(name, "ts_") }) // built in
			if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
				t.Errorf("ok %t (-want +got):\n%s", ok, diff)
			}
		})
	}
}
