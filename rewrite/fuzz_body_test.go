package rewrite_test

import (
	"slices"
	"strings"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// bodyRewriter returns a Rewriter with one function, f, whose copies in both neighbours have the given body.
func bodyRewriter(tb testing.TB, language, body, path string) *rewrite.Rewriter {
	o := catalogOptions()
	original := catalog.Function{Schema: "public", Name: "f", Language: "sql", Body: "SELECT count(*) FROM users"}
	o.Source.Functions = append(slices.Clone(o.Source.Functions), original)
	for _, schema := range []string{"d0", "d1"} {
		f := catalog.Function{Schema: schema, Name: "f", Language: language, Body: strings.ReplaceAll(body, "d0", schema)}
		if path != "" {
			f.Settings = map[string]string{"search_path": strings.ReplaceAll(path, "d0", schema)}
		}
		o.Shadow.Functions = append(o.Shadow.Functions, f)
	}
	o.AllowFunctions = append(o.AllowFunctions, "f")
	return newRewriter(tb, o)
}

// FuzzFunctionBody: any body of a copy is judged without a panic; if calls are redirected to it, every relation of a
// parsed body is the neighbour's own, public, or a CTE.
func FuzzFunctionBody(f *testing.F) {
	for _, body := range []string{
		"SELECT count(*) FROM d0.users", "SELECT 1 FROM d1.users", "SELECT $1 FROM users; TABLE d0.transactions", "BEGIN ATOMIC\n SELECT 1 FROM d0.users;\nEND",
		"RETURN (SELECT 1 FROM d0.users)", "WITH users AS (TABLE d0.users) SELECT clip(1, 2) FROM users", "SELECT 'd0.users'::regclass", "RETURN", "BEGIN ATOMIC",
		"DECLARE r d0.users%ROWTYPE; BEGIN FOR r IN TABLE d0.users LOOP END LOOP; RETURN 1; END", "BEGIN EXECUTE 'x'; END", "SELECT f(), d0.f(), d1.f()",
		"BEGIN RETURN U&\"d0\".users; END", "\"", "$$", "/*", "BEGIN RETURN 1; END); DROP TABLE x; --", "INSERT INTO d0.users VALUES (1)",
	} {
		for _, path := range []string{"", "d0, pg_temp", "public", `"$user"`, `"`} {
			f.Add("sql", body, path)
			f.Add("plpgsql", body, path)
		}
	}
	f.Fuzz(func(t *testing.T, language, body, path string) {
		plan, err := bodyRewriter(t, language, body, path).Analyze(capture.Query{SQL: "SELECT f() FROM users", User: "alice", Database: "shop"})
		if err != nil {
			if got := reasonOf(t, err); got != reasons.NoCopy {
				t.Fatal(err)
			}
			return
		}
		if got, err := plan.For("d0"); err != nil || got != `SELECT "d0".f() FROM "d0".users` {
			t.Fatalf("%s, %v", got, err)
		}
		if language != "sql" {
			return
		}
		if strings.HasPrefix(body, "BEGIN ATOMIC") || strings.HasPrefix(body, "RETURN ") {
			body = "CREATE FUNCTION f() RETURNS int LANGUAGE sql " + body
		}
		tree, err := pg_query.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		ctes := map[string]bool{}
		everyMessage(tree.ProtoReflect(), func(m protoreflect.Message) {
			if n, ok := m.Interface().(*pg_query.CommonTableExpr); ok {
				ctes[n.GetCtename()] = true
			}
		})
		everyMessage(tree.ProtoReflect(), func(m protoreflect.Message) {
			n, ok := m.Interface().(*pg_query.RangeVar)
			if !ok {
				return
			}
			name := n.GetSchemaname() + "." + n.GetRelname()
			switch {
			case n.GetSchemaname() == "d0", name == "public.stores", n.GetSchemaname() == "pg_catalog":
			case n.GetSchemaname() == "" && (ctes[n.GetRelname()] || path != "" || strings.HasPrefix(n.GetRelname(), "pg_")):
			default:
				t.Errorf("the copy in d0 reads %s: %s", name, body)
			}
		})
	})
}
