package rewrite_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

func analyze(t *testing.T, q capture.Query) *rewrite.Plan {
	t.Helper()
	q.Database = "shop"
	plan, err := newRewriter(t, options()).Analyze(q)
	if err != nil {
		t.Fatalf("%s: %v", q.SQL, err)
	}
	return plan
}

// TestKey lists changes that make a query another mechanism, and changes that do not.
func TestKey(t *testing.T) {
	t.Parallel()
	base := capture.Query{SQL: "SELECT count(*) FROM users WHERE id = $1 AND name = 'a'", Params: []capture.Param{{OID: 23, Value: []byte("7")}}}
	key := analyze(t, base).Key
	if len(key) != 64 || strings.Trim(key, "0123456789abcdef") != "" {
		t.Fatalf("key %q is not a hex SHA-256", key)
	}
	for name, c := range map[string]struct {
		change func(*capture.Query)
		same   bool
	}{
		"white space and case": {func(q *capture.Query) { q.SQL = "select COUNT( * )\nfrom Users where ID=$1 and name='a' ;" }, true},
		"comments":             {func(q *capture.Query) { q.SQL += " /* trace 17 */ -- x" }, true},
		"parentheses":          {func(q *capture.Query) { q.SQL = "SELECT count(*) FROM users WHERE ((id = $1) AND (name = 'a'))" }, true},
		"qualified name":       {func(q *capture.Query) { q.SQL = strings.Replace(q.SQL, "users", "public.users", 1) }, true},
		"protocol":             {func(q *capture.Query) { q.Protocol = capture.Extended }, true},
		"user":                 {func(q *capture.Query) { q.User = "bob" }, true},
		"setting without effect": {
			func(q *capture.Query) {
				q.Settings = map[string]string{"statement_timeout": "5s", "application_name": "x"}
			}, true,
		},

		"literal":            {func(q *capture.Query) { q.SQL = strings.Replace(q.SQL, "'a'", "'b'", 1) }, false},
		"literal's type":     {func(q *capture.Query) { q.SQL = strings.Replace(q.SQL, "'a'", "1", 1) }, false},
		"table":              {func(q *capture.Query) { q.SQL = strings.Replace(q.SQL, "users", "transactions", 1) }, false},
		"parameter":          {func(q *capture.Query) { q.Params = []capture.Param{{OID: 23, Value: []byte("8")}} }, false},
		"parameter's type":   {func(q *capture.Query) { q.Params = []capture.Param{{OID: 20, Value: []byte("7")}} }, false},
		"parameter's form":   {func(q *capture.Query) { q.Params = []capture.Param{{OID: 23, Format: 1, Value: []byte("7")}} }, false},
		"NULL parameter":     {func(q *capture.Query) { q.Params = []capture.Param{{OID: 23, Null: true}} }, false},
		"empty parameter":    {func(q *capture.Query) { q.Params = []capture.Param{{OID: 23, Value: []byte{}}} }, false},
		"further parameter":  {func(q *capture.Query) { q.Params = append(q.Params, capture.Param{}) }, false},
		"time zone":          {func(q *capture.Query) { q.Settings = map[string]string{"TimeZone": "UTC"} }, false},
		"custom setting":     {func(q *capture.Query) { q.Settings = map[string]string{"anon.seed": "1"} }, false},
		"search path":        {func(q *capture.Query) { q.Settings = map[string]string{"search_path": "public, app"} }, false},
		"claim in a comment": {func(q *capture.Query) { q.SQL += "/*dp_epsilon='1'*/" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := base
			c.change(&q)
			if got := analyze(t, q).Key == key; got != c.same {
				t.Errorf("same key: %t, want %t", got, c.same)
			}
		})
	}
	null := base
	null.Params = []capture.Param{{OID: 23, Null: true}}
	empty := base
	empty.Params = []capture.Param{{OID: 23, Value: []byte{}}}
	if analyze(t, null).Key == analyze(t, empty).Key {
		t.Error("NULL and the empty value have one key")
	}
}

func TestGroupDropsConstants(t *testing.T) {
	t.Parallel()
	a := analyze(t, capture.Query{SQL: "SELECT count(*) FROM users WHERE id = 1"})
	b := analyze(t, capture.Query{SQL: "SELECT count(*) FROM users WHERE id = 2"})
	c := analyze(t, capture.Query{SQL: "SELECT count(*) FROM users WHERE income = 2"})
	if a.Group != b.Group || a.Group == c.Group || a.Group == "" {
		t.Errorf("groups %q, %q, %q: want the first two alike, the third another", a.Group, b.Group, c.Group)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, want string }{
		"literals": {
			"SELECT count(*), 'a''b', E'\\n', $$x$$, 1.5, 0x1F, b'01', U&'\\0061' FROM users",
			"SELECT count(*), ?, ... FROM users",
		},
		"comments and lines": {"SELECT /* a */ id -- b\n  FROM\tusers", "SELECT id FROM users"},
		"list":               {"SELECT id FROM users WHERE id IN (1, 2,3) AND d > '2020-01-01'", "SELECT id FROM users WHERE id IN (?, ...) AND d > ?"},
		"list with a column": {"SELECT 1, id, 2, 3 FROM users", "SELECT ?, id, ?, ... FROM users"},
		"signs and casts":    {"SELECT -1::int, $1 FROM users", "SELECT -?::int, $1 FROM users"},
		"escaped name":       {`SELECT U&"i\0064" FROM users`, `SELECT U&"..." FROM users`},
		"continued string":   {"SELECT 'a'\n'b' FROM users", "SELECT ? FROM users"},
		"cut": {
			"SELECT " + strings.Repeat("ünï, ", 60) + "id FROM users",
			"SELECT " + strings.Repeat("ünï, ", 32) + "ünï,...",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := analyze(t, capture.Query{SQL: c.sql, Params: []capture.Param{{}}})
			if diff := cmp.Diff(c.want, plan.Summary); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(plan.Summary) > 240 {
				t.Errorf("%d bytes", len(plan.Summary))
			}
		})
	}
}

func TestPlanLists(t *testing.T) {
	t.Parallel()
	plan := analyze(t, capture.Query{
		SQL:      "SELECT util.bucket(max(t.spent)), count(*) FROM transactions t, users u, users v, stores, pg_am",
		Settings: map[string]string{"search_path": `"$user", public, pg_temp`, "TimeZone": "UTC", "dp.seed": "1", "work_mem": "1MB"},
		User:     "alice",
	})
	type lists struct {
		Tables, Public        []rewrite.Table
		Functions, SearchPath []string
		Settings              map[string]string
	}
	want := lists{
		Tables:     []rewrite.Table{{Schema: "public", Name: "transactions"}, {Schema: "public", Name: "users"}},
		Public:     []rewrite.Table{{Schema: "public", Name: "stores"}},
		Functions:  []string{"count", "max", "util.bucket"},
		SearchPath: []string{"alice", "public", "pg_temp"},
		Settings:   map[string]string{"timezone": "UTC", "dp.seed": "1"},
	}
	if diff := cmp.Diff(want, lists{plan.Tables, plan.Public, plan.Functions, plan.SearchPath, plan.Settings}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestForSchema(t *testing.T) {
	t.Parallel()
	plan := analyze(t, capture.Query{SQL: "SELECT users.id FROM users"})
	for name, c := range map[string]struct {
		schema, want string // want "" = an error
	}{
		"plain":             {"d0", `SELECT users.id FROM "d0".users`},
		"quotes and spaces": {`my "d0"`, `SELECT users.id FROM "my ""d0""".users`},
		"keyword":           {"select", `SELECT users.id FROM "select".users`},
		"upper case":        {"D0", `SELECT users.id FROM "D0".users`},
		"not ASCII":         {"größe", `SELECT users.id FROM "größe".users`},
		"injection":         {`d0".users; DROP TABLE x; --`, `SELECT users.id FROM "d0"".users; DROP TABLE x; --".users`},
		"longest":           {strings.Repeat("d", 63), `SELECT users.id FROM "` + strings.Repeat("d", 63) + `".users`},
		"its own":           {"public", `SELECT users.id FROM "public".users`},
		"empty":             {"", ""},
		"too long":          {strings.Repeat("d", 64), ""},
		"NUL":               {"d\x00", ""},
		"not UTF-8":         {"d\xff", ""},
		"system":            {"pg_catalog", ""},
		"information":       {"information_schema", ""},
		"temporary":         {"pg_temp", ""},
		"holds another":     {"ref", ""}, // ref.users is public
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := plan.For(c.schema)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestForIsConcurrent(t *testing.T) {
	t.Parallel()
	plan := analyze(t, capture.Query{SQL: mediumQuery})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			schema := fmt.Sprintf("d%d", i)
			sql, err := plan.For(schema)
			if err != nil || strings.Count(sql, `"`+schema+`"`) != 2 {
				t.Errorf("%v\n%s", err, sql)
			}
		})
	}
	group.Wait()
}
