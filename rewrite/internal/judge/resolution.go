package judge

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// nameUse is one use of a function's, operator's or type's name, to be looked up in the shadow database.
type nameUse struct {
	kind         useKind
	schema, name string // schema "" = resolved by the path
	call         *pg_query.FuncCall
	operands     resolve.Operands
	builtin      bool // there is a built-in one of this name
	node         string
	offset       int32
}

type useKind string

const (
	useFunction useKind = "function"
	useOperator useKind = "operator"
	useType     useKind = "type"
)

// lookup looks up the names of a statement in the catalogs, and records those that a replay looks up again.
type lookup struct {
	findings *findings
	rules    *Rules
	query    capture.Query
	path     resolve.Path
	inBody   bool // the statement is one of the body of a function or of a view

	root   protoreflect.Message // nil in the body of a function
	types  *resolve.Values      // created when needed
	uses   []nameUse
	replay resolve.Path // set by resolve
}

// use records a name. Names in the body of a function are handled by the checker.
func (l *lookup) use(u nameUse) {
	if !l.inBody {
		l.uses = append(l.uses, u)
	}
}

// values returns the possible types of the statement's values; nil = not known, in the body of a function.
func (l *lookup) values() *resolve.Values {
	if l.types == nil && l.root != nil {
		l.types = resolve.NewValues(l.root, l.query.Params, l.rules.functions.source, l.rules.functions.shadow)
	}
	return l.types
}

// callable returns the functions to which a call may refer, by its arguments.
func (l *lookup) callable(found []*catalog.Function, call *pg_query.FuncCall) []*catalog.Function {
	typed := slices.ContainsFunc(found, func(f *catalog.Function) bool { return len(f.Takes) > 0 })
	if !typed || l.values() == nil {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(f *catalog.Function) bool { return !l.values().Callable(f, call) })
}

// applicable reports whether an expression may refer to one of some operators, by its operands.
func (l *lookup) applicable(found []catalog.Operator, e resolve.Operands) bool {
	return slices.ContainsFunc(found, func(o catalog.Operator) bool {
		return o.Takes == [2]Table{} || l.values() == nil || l.values().Applicable(o, e)
	})
}

// replayPath returns the path for replays: the client's own, followed by shadow.search_path if a name of the statement
// is found nowhere else in the shadow database.
func (l *lookup) replayPath() resolve.Path {
	p := l.path
	if l.extendPath() {
		for _, schema := range l.rules.options.ShadowPath {
			if !slices.Contains(p.Schemas, schema) {
				p.Schemas = append(slices.Clone(p.Schemas), schema)
			}
		}
	}
	return p
}

// extendPath reports whether shadow.search_path is needed.
func (l *lookup) extendPath() bool {
	shadow := l.rules.functions.shadow
	client, engine := l.path.Schemas, l.rules.options.ShadowPath
	return len(engine) > 0 && slices.ContainsFunc(l.uses, func(u nameUse) bool {
		if u.schema != "" || u.builtin {
			return false
		}
		if shadow == nil {
			l.findings.assume(AssumedShadowPath)
			return true
		}
		return !u.found(shadow, client) && u.found(shadow, engine)
	})
}

// found reports whether a catalog has an object of the name in one of some schemas.
func (u nameUse) found(x *catalog.Index, schemas []string) bool {
	switch u.kind {
	case useOperator:
		return len(x.OperatorsIn(u.name, schemas)) > 0
	case useType:
		return x.TypeIn(u.name, schemas) != ""
	}
	return len(x.Find("", u.name, schemas)) > 0
}

// resolve determines the path for replays and refuses the names that would refer to other objects under it than in the
// client's database.
func (l *lookup) resolve() {
	l.replay = l.replayPath()
	if l.rules.functions.source == nil || l.rules.functions.shadow == nil {
		return
	}
	for _, u := range l.uses {
		if slices.ContainsFunc(l.findings.refusals, func(r Refusal) bool { return r.Offset == int(u.offset) }) {
			continue // with a more specific reason
		}
		if u.schema == "" && l.path.Uncertain {
			l.inDoubt(u)
			continue
		}
		if detail := l.differs(u); detail != "" {
			l.findings.Refuse(reasons.ResolvesDifferently, u.node, u.offset, string(u.kind)+" "+strings.TrimPrefix(u.schema+"."+u.name, ".")+" "+detail,
				"create the engine's functions, operators and types in the same schemas of the shadow database, or qualify the name with a schema that contains the same ones in both")
		}
	}
}

// inDoubt refuses an unqualified name that may refer to a user-defined object in the shadow database, when the client's
// path is not known.
func (l *lookup) inDoubt(u nameUse) {
	shadow, found := l.rules.functions.shadow, false
	switch u.kind {
	case useFunction:
		found = len(l.callable(shadow.Functions[u.name], u.call)) > 0
	case useOperator:
		found = l.applicable(shadow.Operators[u.name], u.operands)
	}
	if found {
		l.findings.refuseUncertain(u.node, u.offset, string(u.kind)+" "+u.name, "")
	}
}

// differs returns how a name refers to something else in a replay; "" = it does not, or the server reports during the
// replay that it lacks the object.
func (l *lookup) differs(u nameUse) string {
	source, shadow := l.rules.functions.source, l.rules.functions.shadow
	switch u.kind {
	case useType:
		return l.typeDiffers(u)
	case useOperator:
		return l.operatorDiffers(u)
	}
	originals := l.callable(source.Resolve(u.schema, u.name, l.path.Known()), u.call)
	copies := l.callable(shadow.Resolve(u.schema, u.name, l.replay.Known()), u.call)
	if u.builtin {
		originals, copies = withoutWrappers(originals), withoutWrappers(copies)
	}
	return overloadsDiffer(originals, copies, u.builtin, func(f, c *catalog.Function) bool {
		return sameSignature(f, c) && l.samePlace(u, f.Schema, c.Schema)
	})
}

// overloadsDiffer returns how the overloads in the shadow database differ from the originals.
func overloadsDiffer[T any](originals, copies []T, builtin bool, same func(original, copied T) bool) string {
	switch {
	case len(copies) == 0 && !builtin:
		return ""
	case len(copies) < len(originals):
		return "has fewer overloads in the shadow database"
	case len(copies) > len(originals):
		return "has more overloads in the shadow database"
	}
	for _, o := range originals {
		if !slices.ContainsFunc(copies, func(c T) bool { return same(o, c) }) {
			return "has other overloads in the shadow database"
		}
	}
	return ""
}

// samePlace reports whether an object in a schema of the shadow database replaces one of the engine's: it is in the
// same schema, or in one of shadow.search_path while the engine has no object of that name in that schema.
func (l *lookup) samePlace(u nameUse, original, copied string) bool {
	if original == copied || !slices.Contains(l.rules.options.ShadowPath, copied) {
		return original == copied
	}
	return !u.found(l.rules.functions.source, []string{copied})
}

func (l *lookup) operatorDiffers(u nameUse) string {
	in := func(x *catalog.Index, path resolve.Path) []catalog.Operator {
		var found []catalog.Operator
		for _, o := range x.Operators[u.name] {
			if (o.Schema == u.schema || u.schema == "" && path.Has(o.Schema)) && l.applicable([]catalog.Operator{o}, u.operands) {
				found = append(found, o)
			}
		}
		return found
	}
	return overloadsDiffer(in(l.rules.functions.source, l.path), in(l.rules.functions.shadow, l.replay), u.builtin, func(o, c catalog.Operator) bool {
		return withoutSchema(c.Operands, c.Schema) == withoutSchema(o.Operands, o.Schema) && c.Function.Name == o.Function.Name && l.samePlace(u, o.Schema, c.Schema)
	})
}

func (l *lookup) typeDiffers(u nameUse) string {
	original, copied := l.rules.functions.source.TypeIn(u.name, l.path.Schemas), l.rules.functions.shadow.TypeIn(u.name, l.replay.Schemas)
	if original == copied || copied == "" || u.schema != "" || u.builtin {
		return ""
	}
	if original != "" && l.samePlace(u, original, copied) {
		return ""
	}
	return "refers to another type in the shadow database"
}
