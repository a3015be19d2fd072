package rewrite_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// TestOracleTPCH runs queries of the shape of TPC-H and pgbench on both worlds, as TestOracle does. Every one of them
// must be rewritten and answered.
func TestOracleTPCH(t *testing.T) {
	t.Parallel()
	file := func(name string) string {
		text, err := os.ReadFile("testdata/tpch/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	tables := func(schema string, n int) string {
		return strings.NewReplacer("{s}", schema, "{n}", fmt.Sprint(n)).Replace(file("tables.sql"))
	}
	w := &worlds{shop: connect(t, pgtest.Database(t)), shadow: connect(t, pgtest.Database(t))}
	superuser(t, w.shop, "alice")
	neighbours := map[string]int{"d0": 40, "d1": 39}
	run(t, w.shop, file("public.sql"))
	run(t, w.shadow, file("public.sql"))
	var o rewrite.Options
	for _, name := range []string{"customer", "orders", "lineitem", "part", "supplier", "partsupp", "pgbench_accounts", "pgbench_tellers"} {
		o.Protected = append(o.Protected, table("public", name))
	}
	o.Public = []rewrite.Table{table("public", "nation"), table("public", "region")}
	r := newRewriter(t, o)
	_, text, _ := strings.Cut(file("queries.sql"), "\n")
	queries := strings.Split(strings.TrimSpace(text), "\n\n")
	if len(queries) != 25 {
		t.Fatalf("%d queries, want 25", len(queries))
	}
	answers := map[string]map[string]bool{} // by query: does the oracle see the neighbours differ?
	for schema, n := range neighbours {
		run(t, w.shadow, "CREATE SCHEMA "+schema+";"+tables(schema, n))
		run(t, w.shop, "DROP SCHEMA public CASCADE; CREATE SCHEMA public;"+file("public.sql")+tables("public", n))
		for _, sql := range queries {
			q := capture.Query{SQL: strings.TrimSuffix(sql, ";"), User: "alice"}
			plan, err := r.Analyze(q)
			if err != nil {
				t.Errorf("%v\n%s", err, sql)
				continue
			}
			want, got := w.inShop(t, q), w.inShadow(t, plan, schema, q)
			if want != got || strings.HasPrefix(want, "error") || !strings.Contains(want, "[") {
				t.Errorf("%s\n%s", sql, cmp.Diff(want, got))
			}
			if answers[sql] == nil {
				answers[sql] = map[string]bool{}
			}
			answers[sql][got] = true
		}
	}
	differ := 0
	for _, a := range answers {
		differ += len(a) - 1
	}
	if t.Logf("%d of %d queries tell the neighbours apart", differ, len(queries)); differ < 10 {
		t.Error("the neighbours are too much alike for the oracle to see a wrong schema")
	}
}
