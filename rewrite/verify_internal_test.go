package rewrite

import (
	"errors"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// TestWireNumbers compares the field numbers written in this package with the library's descriptors.
func TestWireNumbers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message protoreflect.ProtoMessage
		field   protoreflect.Name
		number  protoreflect.FieldNumber
	}{
		"catalog":         {&pg_query.RangeVar{}, "catalogname", rangeVarCatalog},
		"schema":          {&pg_query.RangeVar{}, "schemaname", rangeVarSchema},
		"relation place":  {&pg_query.RangeVar{}, "location", rangeVarLocation},
		"column's fields": {&pg_query.ColumnRef{}, "fields", columnFields},
		"column place":    {&pg_query.ColumnRef{}, "location", columnLocation},
		"call's name":     {&pg_query.FuncCall{}, "funcname", callName},
		"call place":      {&pg_query.FuncCall{}, "location", callLocation},
		"string":          {&pg_query.String{}, "sval", stringValue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fd := c.message.ProtoReflect().Descriptor().Fields().ByName(c.field)
			if fd == nil || fd.Number() != c.number {
				t.Errorf("%s is %v, want number %d", c.field, fd, c.number)
			}
		})
	}
}

// TestVerifyRefuses adds faults to a plan, of the kinds that a wrong splice would have: each must be refused.
func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	r, err := New(Options{Protected: []Table{{Schema: "public", Name: "users"}, {Schema: "public", Name: "orders"}}})
	if err != nil {
		t.Fatal(err)
	}
	const sql = "WITH orders AS (SELECT * FROM orders WHERE x = 'a') SELECT public.users.id FROM public.users, orders"
	for name, fault := range map[string]func(*Plan){
		"none":              func(*Plan) {},
		"a name left out":   func(p *Plan) { p.edits = p.edits[1:] },
		"a column left out": func(p *Plan) { p.edits = append(p.edits[:1:1], p.edits[2]) },
		"a name too many": func(p *Plan) {
			p.edits = append(p.edits, edit{at: int32(len(sql) - 6), end: len(sql) - 6, protected: true})
		},
		"a place off by one":       func(p *Plan) { p.edits[2].at++ },
		"an end off by one":        func(p *Plan) { p.edits[2].end-- },
		"in a string":              func(p *Plan) { p.edits[0].at, p.edits[0].end = 46, 46 },
		"another literal":          func(p *Plan) { p.sql = sql[:47] + "b" + sql[48:] },
		"another schema":           func(p *Plan) { p.edits[0].protected, p.edits[0].table.Schema = false, "other" },
		"another name":             func(p *Plan) { p.sql = sql[:len(sql)-1] + "z" },
		"a statement more":         func(p *Plan) { p.sql = sql + "; SELECT 1" },
		"a comment that swallows":  func(p *Plan) { p.sql = sql[:len(sql)-8] + "--" + sql[len(sql)-8:] },
		"text that does not parse": func(p *Plan) { p.sql = sql + " WHERE" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := r.Analyze(capture.Query{SQL: sql})
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.edits) != 3 {
				t.Fatalf("%d edits, want 3", len(plan.edits))
			}
			fault(plan)
			got, err := plan.For("d0")
			if name == "none" {
				const want = `WITH orders AS (SELECT * FROM "d0".orders WHERE x = 'a') SELECT "d0".users.id FROM "d0".users, orders`
				if err != nil || got != want {
					t.Errorf("%q, %v; want %q", got, err, want)
				}
				return
			}
			var refusal *UnsupportedError
			if !errors.As(err, &refusal) || refusal.Reason != reasons.VerifyFailed {
				t.Errorf("%q, %v; want %s", got, err, reasons.VerifyFailed)
			}
		})
	}
}
