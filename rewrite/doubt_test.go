package rewrite_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// called returns the doubt of a session that called functions and has set nothing since.
func called(functions ...string) capture.Doubt {
	return capture.Doubt{Calls: []capture.Calls{{Functions: functions}}}
}

// setterOptions returns an engine with functions that change and read settings.
func setterOptions() rewrite.Options {
	o := allowing(catalogOptions(), "reads", "declared")
	o.Claims.Signatures = options().Claims.Signatures
	add := func(name, language, body string) {
		o.Source.Functions = append(o.Source.Functions, catalog.Function{Schema: "app", Name: name, Volatility: "volatile", Language: language, Body: body, Result: "void"})
	}
	add("budget", "plpgsql", "BEGIN SET dp.epsilon = 9; END")
	add("tenant", "sql", "SELECT set_config('app.tenant', $1, true)")
	add("calls_budget", "plpgsql", "BEGIN PERFORM app.budget(); END")
	add("any_name", "sql", "SELECT set_config($1, $2, false)")
	add("runs", "plpgsql", "BEGIN EXECUTE 'SE' || 'T x = 1'; END")
	add("declared", "plpgsql", "BEGIN EXECUTE format('SELECT * FROM %I', $1); END")
	add("path", "plpgsql", "BEGIN SET LOCAL search_path = x; END")
	add("zone", "plpgsql", "BEGIN SET timezone = 'CET'; END")
	add("py", "plpython3u", "plpy.execute('SET ' + x)\nplpy.execute('set dp.epsilon = 1')")
	add("py_set", "plpython3u", "return len(set(x))")
	add("updates", "plpgsql", "BEGIN UPDATE t SET a = 1, b = 2; END")
	add("reads", "sql", "SELECT current_setting('app.noise')::float8")
	o.Source.Functions = append(o.Source.Functions, catalog.Function{Schema: "app", Name: "own_clause", Language: "sql", Body: "SELECT 1", Settings: map[string]string{"search_path": "x"}})
	return o
}

// TestDoubts: a setting in doubt stops only what depends on it.
func TestDoubts(t *testing.T) {
	t.Parallel()
	withSetting := map[string]string{"dp.epsilon": "0.5", "search_path": "public"}
	const qualified, unqualified = "SELECT count(*) FROM public.users", "SELECT count(*) FROM users"
	const uncertain = reasons.SettingsUncertain
	byDefault := &rewrite.Claim{Epsilon: 1}
	for name, c := range map[string]struct {
		sql    string
		doubt  capture.Doubt
		unset  bool // the session has set no epsilon
		rule   *rewrite.Claim
		trust  bool
		pure   bool // no catalog
		want   rewrite.Reason
		source string // of the claim
	}{
		"none":                                  {sql: unqualified, source: "setting"},
		"another setting":                       {sql: unqualified, doubt: capture.Doubt{Names: []string{"app.tenant", "jit"}}, source: "setting"},
		"the claim's setting":                   {sql: qualified, doubt: capture.Doubt{Names: []string{"dp.epsilon"}}, want: uncertain},
		"the claim's setting, a comment":        {sql: qualified + " /*dp_epsilon='0.1'*/", doubt: capture.Doubt{Names: []string{"dp.epsilon"}}, source: "comment"},
		"the claim's setting, an argument":      {sql: "SELECT dp.noisy(count(*), 0.1, 0) FROM public.users", doubt: capture.Doubt{Names: []string{"dp.epsilon"}}, source: "argument"},
		"the claim's setting, a default":        {sql: qualified, doubt: capture.Doubt{Names: []string{"dp.epsilon"}}, rule: byDefault, source: "default"},
		"it may raise the default":              {sql: qualified, doubt: capture.Doubt{Names: []string{"dp.epsilon"}}, rule: byDefault, trust: true, want: uncertain},
		"it was not set, no DP function":        {sql: qualified, doubt: capture.Doubt{Names: []string{"dp.epsilon"}}, unset: true, want: uncertain},
		"unknown code, no DP function":          {sql: qualified, doubt: capture.AnySetting(), unset: true},
		"it was not set, a DP function":         {sql: "SELECT dp.noisy(count(*)) FROM public.users", doubt: capture.Doubt{Names: []string{"dp.epsilon"}}, unset: true, want: uncertain},
		"delta":                                 {sql: qualified, doubt: capture.Doubt{Names: []string{"dp.delta"}}, source: "setting"},
		"the path":                              {sql: unqualified, doubt: capture.Doubt{Names: []string{"search_path"}}, want: uncertain},
		"the path, qualified":                   {sql: qualified, doubt: capture.Doubt{Names: []string{"search_path"}}, source: "setting"},
		"the role":                              {sql: unqualified, doubt: capture.Doubt{Names: []string{"role"}}, source: "setting"},
		"an unknown temporary relation":         {sql: unqualified, doubt: capture.Doubt{Temporary: true}, want: reasons.TempTable},
		"an unknown temporary relation, quali.": {sql: qualified, doubt: capture.Doubt{Temporary: true}, source: "setting"},
		"unknown code":                          {sql: qualified, doubt: capture.AnySetting(), want: uncertain},
		"unknown code, then set":                {sql: qualified, doubt: capture.Doubt{Calls: []capture.Calls{{Functions: []string{"*"}, Except: []string{"dp.epsilon"}}}}, source: "setting"},
		"unknown code, then reset all":          {sql: unqualified, doubt: capture.Doubt{Calls: []capture.Calls{{Functions: []string{"*"}, Only: []string{"role"}}}}, source: "setting"},
		"current_setting":                       {sql: "SELECT dp.noisy(count(*), current_setting('dp.epsilon')::float8, 0) FROM public.users", doubt: capture.Doubt{Names: []string{"dp.epsilon"}}, want: uncertain},
		"current_setting of another":            {sql: "SELECT dp.noisy(count(*), current_setting('dp.epsilon')::float8, 0) FROM public.users", doubt: capture.Doubt{Names: []string{"x.y"}}, source: "argument"},

		"a harmless function":              {sql: unqualified, doubt: called("updates", "own_clause", "py_set", "no_function"), source: "setting"},
		"one that changes the claim":       {sql: qualified, doubt: called("budget"), want: uncertain},
		"and was called before it was set": {sql: qualified, doubt: capture.Doubt{Calls: []capture.Calls{{Functions: []string{"budget"}, Except: []string{"dp.epsilon"}}}}, source: "setting"},
		"through another function":         {sql: qualified, doubt: called("calls_budget"), want: uncertain},
		"one that changes any":             {sql: qualified, doubt: called("any_name"), want: uncertain},
		"one that runs a text":             {sql: qualified, doubt: called("runs"), want: uncertain},
		"a declared one that runs a text":  {sql: qualified, doubt: called("declared"), source: "setting"},
		"in Python":                        {sql: qualified, doubt: called("py"), want: uncertain},
		"row level security":               {sql: unqualified, doubt: called("tenant"), source: "setting"},
		"the path by a function":           {sql: unqualified, doubt: called("path"), want: uncertain},
		"what the server reports":          {sql: unqualified, doubt: called("zone"), source: "setting"},
		"functions that are not listed":    {sql: qualified, doubt: called(capture.UnlistedFunctions), want: uncertain},
		"a setting that the query reads":   {sql: "SELECT app.reads(), count(*) FROM public.users /*dp_epsilon='0.1'*/", doubt: capture.Doubt{Names: []string{"app.noise"}}, want: uncertain},
		"one that it does not read":        {sql: "SELECT app.reads(), count(*) FROM public.users /*dp_epsilon='0.1'*/", doubt: called("budget"), source: "comment"},

		"no catalog, a function":               {sql: qualified, doubt: called("f"), pure: true, want: uncertain},
		"no catalog, a function, and the path": {sql: unqualified + " /*dp_epsilon='0.1'*/", doubt: called("f"), pure: true, source: "comment"},
		"no catalog, a declared function":      {sql: qualified, doubt: called("anon_count", "clip", "pg_advisory_unlock_all"), pure: true, source: "setting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := setterOptions()
			if c.pure {
				o = options()
			}
			o.Claims.Default, o.Claims.TrustSetting = c.rule, c.trust
			o.Claims.TrustComment = true
			q := capture.Query{SQL: c.sql, User: "alice", Database: "shop", Settings: withSetting, Doubt: c.doubt}
			if c.unset {
				q.Settings = nil
			}
			plan, err := newRewriter(t, o).Analyze(q)
			if c.want != "" {
				if err == nil || reasonOf(t, err) != c.want {
					t.Errorf("%v, want %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if source := sourceOf(plan); source != c.source {
				t.Errorf("claim from %q, want %q", source, c.source)
			}
		})
	}
}

func sourceOf(plan *rewrite.Plan) string {
	if plan.Claim == nil {
		return ""
	}
	return plan.Claim.Source
}

// TestImplicitSetters: functions that no statement names, such as those of triggers, may have run at any time.
func TestImplicitSetters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		function catalog.Function
		change   func(*catalog.Catalog)
		refused  bool
	}{
		"a trigger": {catalog.Function{Name: "f", Result: "trigger"}, nil, true},
		"x.f":       {catalog.Function{Name: "f", OfRow: true}, nil, true},
		"of a view": {catalog.Function{Name: "f"}, func(c *catalog.Catalog) {
			c.Relations = append(c.Relations, catalog.Relation{Table: table("app", "v"), Kind: catalog.KindView, Calls: []rewrite.Table{table("app", "f")}})
		}, true},
		"of an operator": {catalog.Function{Name: "f"}, func(c *catalog.Catalog) {
			c.Operators = append(c.Operators, catalog.Operator{Schema: "app", Name: "+!", Operands: "integer, integer", Function: table("app", "f")})
		}, true},
		"a built-in name": {catalog.Function{Name: "lower"}, nil, true},
		"not called":      {catalog.Function{Name: "f"}, nil, false},
	} {
		o := catalogOptions()
		c.function.Schema, c.function.Volatility, c.function.Language, c.function.Body = "app", "volatile", "plpgsql", "BEGIN SET dp.epsilon = 9; END"
		o.Source.Functions = append(o.Source.Functions, c.function)
		if c.change != nil {
			c.change(o.Source)
		}
		_, err := newRewriter(t, o).Analyze(capture.Query{
			SQL: "SELECT count(*) FROM public.users", User: "alice", Database: "shop", Settings: map[string]string{"dp.epsilon": "0.5"},
		})
		if (err != nil) != c.refused || err != nil && reasonOf(t, err) != reasons.SettingsUncertain {
			t.Errorf("%s: %v, refused: want %t", name, err, c.refused)
		}
	}
}

// TestImplicitTemporaries: a function that the session called, or that writing may have run, can have created a temporary
// relation which hides another one. Others leave no doubt.
func TestImplicitTemporaries(t *testing.T) {
	t.Parallel()
	makes := func(name string) string { return "BEGIN CREATE TEMP TABLE " + name + " AS SELECT 1; RETURN NEW; END" }
	function := func(name, result, language, body string) catalog.Function {
		return catalog.Function{Schema: "app", Name: name, Result: result, Volatility: "volatile", Language: language, Body: body}
	}
	const dynamic = "BEGIN EXECUTE format('CREATE TEMP TABLE %I AS SELECT 1', $1); RETURN NEW; END"
	functions := map[string]catalog.Function{
		"trigger": function("fires", "trigger", "plpgsql", makes("users")), "default": function("fills", "integer", "plpgsql", makes("users")),
		"other": function("fires", "trigger", "plpgsql", makes("scratch")), "dynamic": function("fires", "trigger", "plpgsql", dynamic),
		"builds": function("fills", "integer", "plpgsql", dynamic), "python": function("fills", "integer", "plpython3u", "plpy.execute('CREATE TEMPORARY TABLE users (x int)')"),
		"renames": function("fills", "integer", "plpgsql", "BEGIN CREATE TEMP TABLE x (a int); ALTER TABLE x RENAME TO users; RETURN 1; END"),
	}
	wrote := called(capture.ImplicitCode)
	for name, c := range map[string]struct {
		function  string
		doubt     capture.Doubt
		qualified bool
		refused   bool
	}{
		"a trigger":                       {function: "trigger", doubt: wrote, refused: true},
		"a trigger, nothing written":      {function: "trigger"},
		"a trigger, qualified":            {function: "trigger", doubt: wrote, qualified: true},
		"a trigger, of another name":      {function: "other", doubt: wrote},
		"a trigger that builds the name":  {function: "dynamic", doubt: wrote, refused: true},
		"a default":                       {function: "default", doubt: wrote, refused: true},
		"a default, nothing written":      {function: "default"},
		"a call":                          {function: "default", doubt: called("fills"), refused: true},
		"a call of another":               {function: "default", doubt: called("other")},
		"a call of some":                  {function: "default", doubt: called(capture.UnlistedFunctions), refused: true},
		"a call that builds the name":     {function: "builds", doubt: called("fills"), refused: true},
		"a call, not the one that builds": {function: "builds", doubt: wrote},
		"a call of Python":                {function: "python", doubt: called("fills"), refused: true},
		"a call that renames":             {function: "renames", doubt: called("fills"), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := setterOptions()
			o.Source.Functions = append(o.Source.Functions, functions[c.function])
			sql := "SELECT count(*) FROM users"
			if c.qualified {
				sql = "SELECT count(*) FROM public.users"
			}
			_, err := newRewriter(t, o).Analyze(capture.Query{SQL: sql, User: "alice", Database: "shop", Settings: map[string]string{"dp.epsilon": "0.5", "search_path": "public"}, Doubt: c.doubt})
			if (err != nil) != c.refused {
				t.Errorf("%v, refused: want %t", err, c.refused)
			}
		})
	}
}
