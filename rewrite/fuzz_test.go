package rewrite_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// fuzzOptions has all protected tables in one schema, so that a rewrite can be mapped back.
func fuzzOptions(schema string) rewrite.Options {
	o := options()
	o.Protected = []rewrite.Table{{Schema: schema, Name: "users"}, {Schema: schema, Name: "transactions"}}
	return o
}

// FuzzRewrite: every analysed query can be rewritten; the result parses; each of its relations is a copy, a public
// table, a system catalog or a CTE; and mapping the result back gives the original with its names qualified.
func FuzzRewrite(f *testing.F) {
	for _, file := range goldenFiles(f) {
		f.Add(goldenQuery(f, file).SQL)
	}
	f.Add(mediumQuery)
	for _, q := range generated(200, 20260401, "shop") {
		f.Add(q.SQL)
	}
	there, back := newRewriter(f, fuzzOptions("public")), newRewriter(f, fuzzOptions("d0"))
	params := make([]capture.Param, 3)
	f.Fuzz(func(t *testing.T, sql string) {
		q := capture.Query{SQL: sql, User: "alice", Database: "shop", Params: params}
		plan, err := there.Analyze(q)
		if err != nil {
			var refusal *rewrite.UnsupportedError
			if !errors.As(err, &refusal) || refusal.Reason == reasons.VerifyFailed || refusal.Reason == reasons.Internal ||
				refusal.Offset >= len(sql)+1 || !slices.Contains(reasons.All(), refusal.Reason) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		rewritten, err := plan.For("d0")
		if err != nil {
			t.Fatal(err)
		}
		tree, err := pg_query.Parse(rewritten)
		if err != nil {
			t.Fatalf("%v\n%s", err, rewritten)
		}
		checkRelations(t, tree, rewritten)

		q.SQL = rewritten
		planBack, err := back.Analyze(q)
		if err != nil {
			t.Fatalf("%v\n%s", err, rewritten)
		}
		got, err := planBack.For("public")
		if err != nil {
			t.Fatal(err)
		}
		want, err := plan.For("public")
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("mapped back: %s\nwant: %s", got, want)
		}
	})
}

// checkRelations walks the whole tree without using the package's rules of scope.
func checkRelations(t *testing.T, tree *pg_query.ParseResult, sql string) {
	t.Helper()
	ctes := map[string]bool{}
	var relations []*pg_query.RangeVar
	var columns [][]*pg_query.Node
	everyMessage(tree.ProtoReflect(), func(m protoreflect.Message) {
		switch n := m.Interface().(type) {
		case *pg_query.CommonTableExpr:
			ctes[n.GetCtename()] = true
		case *pg_query.RangeVar:
			relations = append(relations, n)
		case *pg_query.ColumnRef:
			columns = append(columns, n.GetFields())
		}
	})
	inPlace := []string{"public.stores", "ref.users"}
	for _, r := range relations {
		name := r.GetSchemaname() + "." + r.GetRelname()
		switch {
		case r.GetCatalogname() != "":
			t.Errorf("relation in a database: %s", sql)
		case r.GetSchemaname() == "d0" || slices.Contains(inPlace, name):
		case r.GetSchemaname() == "pg_catalog":
		case r.GetSchemaname() == "" && (ctes[r.GetRelname()] || strings.HasPrefix(r.GetRelname(), "pg_")):
		default:
			t.Errorf("relation %s: %s", name, sql)
		}
	}
	for _, fields := range columns {
		if len(fields) < 3 {
			continue
		}
		schema, table := fields[0].GetString_().GetSval(), fields[1].GetString_().GetSval()
		if len(fields) > 3 || schema != "d0" && schema != "pg_catalog" && !slices.Contains(inPlace, schema+"."+table) {
			t.Errorf("column of %s.%s: %s", schema, table, sql)
		}
	}
}

// everyMessage calls visit on m and all messages below it.
func everyMessage(m protoreflect.Message, visit func(protoreflect.Message)) {
	visit(m)
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			for list, i := v.List(), 0; i < list.Len(); i++ {
				everyMessage(list.Get(i).Message(), visit)
			}
		default:
			everyMessage(v.Message(), visit)
		}
		return true
	})
}
