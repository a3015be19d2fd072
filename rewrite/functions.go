package rewrite

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed builtin_functions.txt
var builtinFunctions string

// functionClass is what a replay may do with a function.
type functionClass uint8

const (
	functionUser          functionClass = iota // not built in
	functionSafe                               // built in, the same on every neighbour
	functionVolatile                           // built in, with side effects; may be allowed by name
	functionNever                              // built in, reads names, the catalog, files or the session
	functionNeverVolatile                      // both
)

// functions knows the built-in functions, the allowed ones and the DP functions. It is read-only once made.
type functions struct {
	source, shadow *catalogIndex // users' functions, where clients ask and where replays run; nil = not known
	builtin        map[string]functionClass
	allowed        map[[2]string]bool // {schema, name}; schema "" = any
	anyUser        bool               // every function that is not built in is declared safe
	signatures     []Signature
	setters        bool // one of the source's may change the settings of a session

	builtinOperators map[string]bool
}

func newFunctions(o Options) *functions {
	f := &functions{
		source: newCatalogIndex(o.Source), shadow: newCatalogIndex(o.Shadow),
		builtin: map[string]functionClass{}, allowed: map[[2]string]bool{}, signatures: o.Claims.Signatures,
		builtinOperators: map[string]bool{},
	}
	f.setters = f.source.hasSetters()
	for line := range strings.Lines(builtinOperators) {
		f.builtinOperators[strings.TrimSpace(line)] = true
	}
	classes := map[string]functionClass{
		"safe": functionSafe, "volatile": functionVolatile, "never": functionNever, "never-volatile": functionNeverVolatile,
	}
	for line := range strings.Lines(builtinFunctions) {
		name, class, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && name != "#" {
			f.builtin[name] = classes[class]
		}
	}
	for _, s := range o.AllowFunctions {
		if s == AnyFunction {
			f.anyUser = true
			continue
		}
		schema, name, _ := splitFunction(s)
		f.allowed[[2]string{schema, name}] = true
	}
	return f
}

// class returns what schema.name is; schema "" is an unqualified call.
func (f *functions) class(schema, name string) functionClass {
	if schema != "" && schema != "pg_catalog" {
		return functionUser
	}
	return f.builtin[name]
}

// isAllowed reports whether the configuration declares schema.name safe. A declaration without a schema
// holds for any; one with a schema holds for an unqualified call when the path has that schema.
func (f *functions) isAllowed(schema, name string, path searchPath) bool {
	if f.anyUser && f.class(schema, name) == functionUser && !isForeignFamily(name) {
		return true
	}
	if f.allowed[[2]string{"", name}] || schema != "" && f.allowed[[2]string{schema, name}] {
		return true
	}
	if schema != "" || path.uncertain {
		return false
	}
	return slices.ContainsFunc(path.schemas, func(s string) bool { return f.allowed[[2]string{s, name}] })
}

// readsProtected reports whether a function that a call may mean reads a protected table: one of users, which are
// those where the client asked, or one in the shadow database, in any schema unless the call names one.
func (f *functions) readsProtected(n *names, schema, name string, users []*Function) bool {
	if slices.ContainsFunc(users, n.isReader) {
		return true
	}
	return f.shadow != nil && slices.ContainsFunc(f.shadow.functions[name], func(g *Function) bool {
		return (schema == "" || schema == g.Schema) && n.isReader(g)
	})
}

// declared reports whether the configuration names a function of a known schema as safe or as a DP function.
func (f *functions) declared(schema, name string) bool {
	_, isDP := f.signature(schema, name, searchPath{})
	return isDP || f.isAllowed(schema, name, searchPath{})
}

// describeFunctions adds what the catalog says about users' functions of a name: "f (volatile, plpgsql)".
func describeFunctions(name string, found []*Function) string {
	var kinds []string
	for _, f := range found {
		if kind := f.Volatility + ", " + f.Language; !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return "function " + name
	}
	return "function " + name + " (" + strings.Join(kinds, "; ") + ")"
}

// signature returns the DP signature of schema.name, by the same rule as isAllowed.
func (f *functions) signature(schema, name string, path searchPath) (Signature, bool) {
	for _, s := range f.signatures {
		wantSchema, wantName, _ := splitFunction(s.Function)
		switch {
		case wantName != name:
		case wantSchema == "" || wantSchema == schema:
			return s, true
		case schema == "" && !path.uncertain && slices.Contains(path.schemas, wantSchema):
			return s, true
		}
	}
	return Signature{}, false
}

// isForeignFamily names extension functions that reach out of the database, to tell them from merely unknown ones.
func isForeignFamily(name string) bool {
	return strings.HasPrefix(name, "dblink") || strings.HasPrefix(name, "postgres_fdw_") || strings.HasPrefix(name, "http_")
}
