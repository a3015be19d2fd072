package judge

import (
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/builtin"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// functionClass says whether a replay may call a function.
type functionClass uint8

const (
	functionUser          functionClass = iota // not built in
	functionSafe                               // built in, with the same result on every neighbour
	functionVolatile                           // built in, with side effects; may be allowed by name
	functionNever                              // built in, reads names, the catalog, files or the session's state
	functionNeverVolatile                      // both
	functionUnlisted                           // built in, and nothing else is known of it; may be allowed by name
)

// isListed reports whether what the function does is known without the catalogs.
func (c functionClass) isListed() bool { return c != functionUser && c != functionUnlisted }

// refusal returns the reason to refuse a built-in function, "" if it is safe.
func (c functionClass) refusal() reasons.Reason {
	switch c {
	case functionNever:
		return reasons.UnsafeFunction
	case functionVolatile, functionNeverVolatile:
		return reasons.SideEffects
	case functionUnlisted:
		return reasons.UnknownFunction
	}
	return ""
}

// why continues the detail of a refusal after the name of the function.
func (c functionClass) why() string {
	switch c {
	case functionNever:
		return " depends on names, catalogs, files or the session"
	case functionVolatile, functionNeverVolatile:
		return " has side effects"
	case functionUnlisted:
		return " is built into the server, but is not in the list of functions that dpwatch knows"
	}
	return ""
}

// AnyFunction in Options.AllowFunctions declares every function that is not built in safe.
const AnyFunction = "*"

// functions holds the operators that are built in, the allowed functions and the DP functions. It is read-only after
// construction.
type functions struct {
	source, shadow *catalog.Index     // user-defined functions of the client's database and of the shadow database; nil = not known
	allowed        map[[2]string]bool // {schema, name}; schema "" = any
	anyUser        bool               // every function that is not built in is declared safe
	signatures     []claim.Signature

	builtinOperators map[string]bool
}

func newFunctions(o Options) *functions {
	f := &functions{
		source: o.Source, shadow: o.Shadow,
		allowed: map[[2]string]bool{}, signatures: o.Signatures,
		builtinOperators: map[string]bool{},
	}
	for line := range strings.Lines(builtinOperators) {
		f.builtinOperators[strings.TrimSpace(line)] = true
	}
	for _, s := range o.AllowFunctions {
		if s == AnyFunction {
			f.anyUser = true
			continue
		}
		schema, name, _ := ident.ParseFunction(s)
		f.allowed[[2]string{schema, name}] = true
	}
	return f
}

// class returns the class of schema.name; schema "" is an unqualified call.
func (f *functions) class(schema, name string) functionClass {
	if schema != "" && schema != "pg_catalog" {
		return functionUser
	}
	switch builtin.Of(name) {
	case builtin.Safe:
		return functionSafe
	case builtin.Volatile:
		return functionVolatile
	case builtin.Never:
		return functionNever
	case builtin.NeverVolatile:
		return functionNeverVolatile
	case builtin.Unlisted:
	}
	if _, exists := f.unlisted(name); exists || schema == "pg_catalog" {
		return functionUnlisted
	}
	return functionUser
}

// unlisted returns a function of pg_catalog, in the client's or the shadow database, that package builtin does not
// list.
func (f *functions) unlisted(name string) (u catalog.Unlisted, exists bool) {
	for _, x := range []*catalog.Index{f.source, f.shadow} {
		if x == nil {
			continue
		}
		if found, ok := x.Unlisted[name]; ok {
			u, exists = catalog.Unlisted{Name: name, OfOne: u.OfOne || found.OfOne, OfRow: u.OfRow || found.OfRow}, true
		}
	}
	return u, exists
}

// textArguments reports whether a text among the arguments of a function may become a name, and whether it always does.
func (f *functions) textArguments(schema, name string) (risky, byName bool) {
	class := f.class(schema, name)
	never := class == functionNever || class == functionNeverVolatile || class == functionUnlisted
	return class != functionSafe, never && name != "current_setting" && name != "set_config"
}

// isAllowed reports whether the configuration declares schema.name safe. A declaration without a schema applies to any
// schema; one with a schema applies to an unqualified call if the path has that schema.
func (f *functions) isAllowed(schema, name string, path resolve.Path) bool {
	if f.anyUser && f.class(schema, name) == functionUser && !isForeignFamily(name) {
		return true
	}
	if f.allowed[[2]string{"", name}] || schema != "" && f.allowed[[2]string{schema, name}] {
		return true
	}
	if schema != "" || path.Uncertain {
		return false
	}
	return slices.ContainsFunc(path.Schemas, func(s string) bool { return f.allowed[[2]string{s, name}] })
}

// readsProtected reports whether a function that a call may refer to reads a protected table: one of users, the
// candidates in the client's database, or one in the shadow database, in any schema unless the call names one.
func (f *functions) readsProtected(n *names, schema, name string, users []*catalog.Function) bool {
	if slices.ContainsFunc(users, n.isReader) {
		return true
	}
	return f.shadow != nil && slices.ContainsFunc(f.shadow.Functions[name], func(g *catalog.Function) bool {
		return (schema == "" || schema == g.Schema) && n.isReader(g)
	})
}

// declared reports whether the configuration declares a function of a known schema as safe or as a DP function.
func (f *functions) declared(schema, name string) bool {
	_, isDP := f.signature(schema, name, resolve.Path{})
	return isDP || f.isAllowed(schema, name, resolve.Path{})
}

// declaredAnywhere reports whether the configuration declares functions of a name, in whatever schema.
func (f *functions) declaredAnywhere(name string) bool {
	if f.anyUser && !isForeignFamily(name) {
		return true
	}
	for declared := range f.allowed {
		if declared[1] == name {
			return true
		}
	}
	return slices.ContainsFunc(f.signatures, func(s claim.Signature) bool {
		_, declared, _ := ident.ParseFunction(s.Function)
		return declared == name
	})
}

// describeFunctions adds the catalog's properties of user-defined functions to a name: "f (volatile, plpgsql)".
func describeFunctions(name string, found []*catalog.Function) string {
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
func (f *functions) signature(schema, name string, path resolve.Path) (claim.Signature, bool) {
	for _, s := range f.signatures {
		wantSchema, wantName, _ := ident.ParseFunction(s.Function)
		switch {
		case wantName != name:
		case wantSchema == "" || wantSchema == schema:
			return s, true
		case schema == "" && !path.Uncertain && slices.Contains(path.Schemas, wantSchema):
			return s, true
		}
	}
	return claim.Signature{}, false
}

// isForeignFamily reports whether a name is that of an extension function with access outside the database, in contrast
// to an unknown function.
func isForeignFamily(name string) bool {
	return strings.HasPrefix(name, "dblink") || strings.HasPrefix(name, "postgres_fdw_") || strings.HasPrefix(name, "http_")
}
