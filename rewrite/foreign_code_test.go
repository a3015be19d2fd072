package rewrite_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// TestForeignCode: a function in another language that executes SQL on a protected table needs copies that name their
// own tables alone, or an engine for each world; what is not analysed is listed in Assumed.
func TestForeignCode(t *testing.T) {
	t.Parallel()
	const (
		body    = `return plpy.execute("SELECT count(*) AS n FROM %users")[0]["n"]`
		listed  = "function public.f reads no protected table but the copies (its body is in a language that is not analysed)"
		nothing = "function public.f reads no protected table (its reads cannot be derived from the engine's catalog)"
	)
	function := func(schema, text string) catalog.Function {
		return catalog.Function{Schema: schema, Name: "f", Kind: catalog.KindFunction, Arguments: "e double precision", Result: "double precision", Volatility: "volatile", Language: "plpython3u", Body: text}
	}
	named := func(schema string) string { return strings.ReplaceAll(body, "%", schema) }
	for name, c := range map[string]struct {
		source, d0, d1 string // bodies; "" = no copy
		sql            string
		own            bool // one engine for each world
		want, assumed  string
		detail, hint   string // of the refusal
	}{
		"no SQL":                    {source: "users = e; return users", want: `SELECT f(1) FROM "d0".users`, assumed: listed},
		"no table":                  {source: "import noise; return noise.laplace(e)", want: `SELECT f(1) FROM "d0".users`, assumed: nothing},
		"copies":                    {source: named("public."), d0: named("d0."), d1: named("d1."), want: `SELECT "d0".f(1) FROM "d0".users`, assumed: listed},
		"copies alone":              {source: named(""), d0: named("d0."), d1: named("d1."), sql: "SELECT f(1)", want: `SELECT "d0".f(1)`, assumed: listed},
		"quoted schema":             {source: named(""), d0: named(`"d0".`), d1: named("D1."), want: `SELECT "d0".f(1) FROM "d0".users`, assumed: listed},
		"no copy":                   {source: named(""), detail: "schema d0 has no copy of it", hint: "let it take arrays"},
		"one copy":                  {source: named(""), d0: named("d0."), detail: "schema d1 has no copy of it"},
		"copy of the same world":    {source: named(""), d0: named("d0."), d1: named("d0."), detail: "contains the name of the schema d0 of another neighbour"},
		"copy without a schema":     {source: named(""), d0: named("d0."), d1: named(""), detail: "contains the name users without the schema d1 before it"},
		"copy of the original":      {source: named(""), d0: named("d0."), d1: named("public."), detail: "contains the name users without the schema d1 before it"},
		"copy of another schema":    {source: named(""), d0: named("d0."), d1: named("ad1."), detail: "contains the name users without the schema d1 before it"},
		"engines":                   {source: named("public."), own: true, want: `SELECT f(1) FROM "d0".users`, assumed: listed},
		"engines, nothing else":     {source: named(""), own: true, sql: "SELECT f(1)", want: "SELECT f(1)", assumed: listed},
		"PL/Perl":                   {source: `return spi_exec_query("SELECT * FROM users")->{processed}`, detail: "schema d0 has no copy of it"},
		"PL/v8":                     {source: `return plv8.execute("SELECT * FROM users").length`, detail: "schema d0 has no copy of it"},
		"without SQL, nothing else": {source: "users = e; return users", sql: "SELECT f(1)", detail: "its body is not analysed"},
	} {
		o := catalogOptions()
		o.OwnEngines = c.own
		o.AllowFunctions = append(slices.Clone(o.AllowFunctions), "f")
		source, shadow := *o.Source, *o.Shadow
		source.Functions = append(slices.Clone(source.Functions), function("public", c.source))
		shadow.Functions = append(slices.Clone(shadow.Functions), function("public", c.source))
		for schema, text := range map[string]string{"d0": c.d0, "d1": c.d1} {
			if text != "" {
				shadow.Functions = append(shadow.Functions, function(schema, text))
			}
		}
		o.Source, o.Shadow = &source, &shadow
		if c.sql == "" {
			c.sql = "SELECT f(1) FROM users"
		}
		plan, err := newRewriter(t, o).Analyze(capture.Query{SQL: c.sql, User: "alice", Database: "shop"})
		if c.detail != "" {
			var refused *rewrite.UnsupportedError
			if !errors.As(err, &refused) || refused.Reason != reasons.NoCopy || !strings.Contains(refused.Detail, c.detail) || !strings.Contains(refused.Hint, c.hint) {
				t.Errorf("%s: %+v; want no_copy, %q, %q", name, refused, c.detail, c.hint)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := plan.For("d0")
		if err != nil || got != c.want || !slices.Contains(plan.Assumed, c.assumed) {
			t.Errorf("%s: %s, %v, assumed %q; want %s, %q", name, got, err, plan.Assumed, c.want, c.assumed)
		}
	}
}
