package rewrite_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// followedHints maps the refused statements of the corpus to statements that follow the hint.
var followedHints = map[string]string{
	"SELECT count(*) FROM users, pg_sleep(0)": "SELECT count(*) FROM users",
	"SELECT c.reltuples >= -1 AS known, count(*) FROM users, pg_class c WHERE c.oid = 'users'::regclass GROUP BY 1": "SELECT count(*) FROM users",
	"EXPLAIN SELECT count(*) FROM users": "SELECT count(*) FROM users",
}

// corpusFile returns a file of the corpus for one schema.
func corpusFile(t *testing.T, name, schema string, users int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "corpus", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("{s}", schema, "{n}", strconv.Itoa(users)).Replace(string(text))
}

// corpus returns statements as sent by business intelligence tools, dashboards and models, by file.
func corpus(t *testing.T, database string) map[string][]capture.Query {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]capture.Query{}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "public.sql" || name == "tables.sql" {
			continue
		}
		_, text, _ := strings.Cut(corpusFile(t, name, "", 0), "\n")
		for sql := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
			sql = strings.ReplaceAll(sql, `"shop"`, `"`+database+`"`)
			all[name] = append(all[name], capture.Query{SQL: sql, User: "alice", Database: database, Settings: map[string]string{"search_path": "public"}})
		}
	}
	return all
}

// TestOracleCorpus: of the statements of dashboards, at least 98 % are rewritten; each of these gives the same answer
// on every neighbour as on the original schema with that neighbour's rows; and the hint of a refusal helps.
func TestOracleCorpus(t *testing.T) {
	t.Parallel()
	shopDSN, shadowDSN := pgtest.Database(t), pgtest.Database(t)
	w := &worlds{shop: connect(t, shopDSN), shadow: connect(t, shadowDSN)}
	if !available(t, w, "citext", "pg_trgm", "unaccent", "hstore", "pgcrypto") {
		t.Skip("the server lacks the contrib extensions")
	}
	superuser(t, w.shop, "alice")
	users := map[string]int{"d0": 24, "d1": 23}
	run(t, w.shop, corpusFile(t, "public.sql", "", 0)+corpusFile(t, "tables.sql", "public", users["d0"]))
	run(t, w.shadow, corpusFile(t, "public.sql", "", 0))
	for schema, n := range users {
		run(t, w.shadow, "CREATE SCHEMA "+schema+";"+corpusFile(t, "tables.sql", schema, n))
	}
	o := rewrite.Options{
		Public:     []rewrite.Table{table("public", "products"), table("public", "stores"), table("public", "calendar")},
		Neighbours: []string{"d0", "d1"}, AllowFunctions: []string{"safe_divide"},
		Claims: rewrite.ClaimRules{Signatures: []rewrite.Signature{{Function: "laplace", Epsilon: -1}}, TrustComment: true},
	}
	for _, name := range []string{"users", "orders", "order_items", "events", "subscriptions"} {
		o.Protected = append(o.Protected, table("public", name))
	}
	var err error
	if o.Source, err = read.Catalog(t.Context(), shopDSN, time.Minute); err != nil {
		t.Fatal(err)
	}
	if o.Shadow, err = read.Catalog(t.Context(), shadowDSN, time.Minute); err != nil {
		t.Fatal(err)
	}
	r := newRewriter(t, o)
	plans, total, refused := map[*rewrite.Plan]capture.Query{}, 0, 0
	for name, queries := range corpus(t, o.Source.Database) {
		rewritten := 0
		for _, q := range queries {
			total++
			plan, err := r.Analyze(q)
			if err == nil {
				plans[plan] = q
				rewritten++
				continue
			}
			refused++
			var refusal *rewrite.UnsupportedError
			if !errors.As(err, &refusal) || refusal.Hint == "" {
				t.Errorf("%s: %v; want a hint\n%s", name, err, q.SQL)
			}
			amended := q
			if amended.SQL = followedHints[q.SQL]; amended.SQL == "" {
				t.Errorf("%s: %v\n%s", name, err, q.SQL)
				continue
			}
			if _, err := r.Analyze(amended); err != nil {
				t.Errorf("the hint does not help: %v\n%s", err, amended.SQL)
			}
		}
		t.Logf("%s: %d of %d", name, rewritten, len(queries))
	}
	t.Logf("%d of %d statements are rewritten (%.1f %%)", total-refused, total, 100*float64(total-refused)/float64(total))
	if total < 200 || 100*(total-refused) < 98*total {
		t.Errorf("%d of %d statements are rewritten; want 98 of 100, of 200 or more", total-refused, total)
	}
	answers := map[*rewrite.Plan]map[string]bool{}
	for schema, n := range users {
		run(t, w.shop, "RESET SESSION AUTHORIZATION; RESET ALL; DROP TABLE users, orders, order_items, events, subscriptions CASCADE;"+corpusFile(t, "tables.sql", "public", n))
		w.inShopNow = ""
		for plan, q := range plans {
			if answers[plan] == nil {
				answers[plan] = map[string]bool{}
			}
			if strings.HasPrefix(q.SQL, "COPY") {
				w.copies(t, plan, schema, q)
				continue
			}
			want, got := w.fetched(t, q), w.inShadow(t, plan, schema, q)
			if want != got || strings.HasPrefix(want, "error") {
				sql, _ := plan.For(schema)
				t.Errorf("%s\noriginal: %s\nrewritten: %s\n%s", want[:min(len(want), 300)], q.SQL, sql, cmp.Diff(want, got))
			}
			answers[plan][got] = true
		}
	}
	apart := 0
	for _, seen := range answers {
		if len(seen) > 1 {
			apart++
		}
	}
	if t.Logf("%d tell the neighbours apart", apart); apart < 150 {
		t.Error("the neighbours are too much alike for the oracle to see a wrong schema")
	}
}

var cursorName = regexp.MustCompile(`(?is)^(?:\s|/\*.*?\*/)*declare\s+("(?:[^"]|"")+"|\w+)`)

// fetched returns the answer of a query in shop, or all rows of the cursor that it declares.
func (w *worlds) fetched(t *testing.T, q capture.Query) string {
	t.Helper()
	m := cursorName.FindStringSubmatch(q.SQL)
	if m == nil {
		return w.inShop(t, q)
	}
	begin, declare, fetch := q, q, q
	begin.SQL, fetch.SQL = "BEGIN", "FETCH ALL FROM "+m[1]
	begin.Params, fetch.Params = nil, nil
	declare.SQL = strings.Replace(q.SQL, " BINARY ", " ", 1) // which changes how values are written
	w.inShop(t, begin)
	defer run(t, w.shop, "ROLLBACK")
	if failed := w.inShop(t, declare); strings.HasPrefix(failed, "error") {
		return failed
	}
	return w.inShop(t, fetch)
}

// available reports whether the server has extensions.
func available(t *testing.T, w *worlds, names ...string) bool {
	t.Helper()
	for _, name := range names {
		got := answer(t, w.shop, "SELECT count(*) FROM pg_available_extensions WHERE name = '"+name+"'", capture.Query{})
		if !strings.Contains(got, `"1"`) {
			return false
		}
	}
	return true
}
