package rewrite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// TestOracleQrlew runs the output of a real DP rewriter on both worlds. Its noise is the same on both because each run
// starts with the same seed.
func TestOracleQrlew(t *testing.T) {
	t.Parallel()
	tables := func(schema string, users int) string {
		return strings.NewReplacer("{s}", schema, "{n}", fmt.Sprint(users)).Replace(`CREATE SCHEMA IF NOT EXISTS {s};
			CREATE TABLE {s}.users (id int PRIMARY KEY, income float8, income_class text);
			INSERT INTO {s}.users SELECT i, 100 * i, (ARRAY['low', 'mid', 'high'])[1 + i % 3] FROM generate_series(1, {n}) i;
			CREATE TABLE {s}.transactions (id int PRIMARY KEY, user_id int REFERENCES {s}.users, store_id int, other_id int, spent float8);
			INSERT INTO {s}.transactions SELECT i, 1 + i % {n}, 1 + i % 5, 1 + i % 3, i % 97 FROM generate_series(1, 40 * {n}) i;
			ANALYZE {s}.users; ANALYZE {s}.transactions;`)
	}
	w := &worlds{shop: connect(t, pgtest.Database(t)), shadow: connect(t, pgtest.Database(t))}
	superuser(t, w.shop, "alice")
	neighbours := map[string]int{"d0": 40, "d1": 39}
	r := newRewriter(t, rewrite.Options{Protected: []rewrite.Table{table("public", "users"), table("public", "transactions")}})
	files, err := filepath.Glob("testdata/qrlew/*.sql")
	if err != nil || len(files) != 4 {
		t.Fatalf("%d files, %v; want 4", len(files), err)
	}
	answers := map[string]map[string]bool{}
	for schema, users := range neighbours {
		run(t, w.shadow, tables(schema, users))
		run(t, w.shop, "RESET SESSION AUTHORIZATION; DROP SCHEMA public CASCADE;"+tables("public", users))
		w.inShopNow = ""
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			q := capture.Query{SQL: string(text), User: "alice"}
			plan, err := r.Analyze(q)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			run(t, w.shop, "SELECT setseed(0.5)")
			want := w.inShop(t, q)
			run(t, w.shadow, "SELECT setseed(0.5)")
			if got := w.inShadow(t, plan, schema, q); want != got || strings.HasPrefix(want, "error") || !strings.Contains(want, "[") {
				t.Errorf("%s on %s:\n%s", file, schema, cmp.Diff(want, got))
			}
			if answers[file] == nil {
				answers[file] = map[string]bool{}
			}
			answers[file][want] = true
		}
	}
	for file, a := range answers {
		if len(a) != 2 {
			t.Errorf("%s answers alike on both neighbours: the oracle would not see a wrong schema", file)
		}
	}
}
