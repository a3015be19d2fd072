package rewrite

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
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

// use records a name. Names in the body of a function are handled by the judge.
func (w *walker) use(u nameUse) {
	if w.callees == nil && !w.printed {
		w.uses = append(w.uses, u)
	}
}

// values returns the possible types of the statement's values; nil = not known, in the body of a function.
func (w *walker) values() *resolve.Values {
	if w.types == nil && w.root != nil {
		w.types = resolve.NewValues(w.root, w.q.Params, w.r.functions.source, w.r.functions.shadow)
	}
	return w.types
}

// callable returns the functions to which a call may refer, by its arguments.
func (w *walker) callable(found []*catalog.Function, call *pg_query.FuncCall) []*catalog.Function {
	typed := slices.ContainsFunc(found, func(f *catalog.Function) bool { return len(f.Takes) > 0 })
	if !typed || w.values() == nil {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(f *catalog.Function) bool { return !w.values().Callable(f, call) })
}

// applicable reports whether an expression may refer to one of some operators, by its operands.
func (w *walker) applicable(found []catalog.Operator, e resolve.Operands) bool {
	return slices.ContainsFunc(found, func(o catalog.Operator) bool {
		return o.Takes == [2]Table{} || w.values() == nil || w.values().Applicable(o, e)
	})
}

// replayPath returns the path for replays: the client's own, followed by shadow.search_path if a name of the statement is
// found nowhere else in the shadow database.
func (w *walker) replayPath() resolve.Path {
	p := w.path
	if w.extendPath() {
		for _, s := range w.r.options.ShadowPath {
			if !slices.Contains(p.Schemas, s) {
				p.Schemas = append(slices.Clone(p.Schemas), s)
			}
		}
	}
	return p
}

// extendPath reports whether shadow.search_path is needed.
func (w *walker) extendPath() bool {
	shadow := w.r.functions.shadow
	client, engine := w.path.Schemas, w.r.options.ShadowPath
	return len(engine) > 0 && slices.ContainsFunc(w.uses, func(u nameUse) bool {
		if u.schema != "" || u.builtin {
			return false
		}
		if shadow == nil {
			w.assume(AssumedShadowPath)
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
func (w *walker) resolve() {
	w.replay = w.replayPath()
	if w.r.functions.source == nil || w.r.functions.shadow == nil {
		return
	}
	for _, u := range w.uses {
		if slices.ContainsFunc(w.refusals, func(r refusal) bool { return r.Offset == int(u.offset) }) {
			continue // with a more specific reason
		}
		if u.schema == "" && w.path.Uncertain {
			w.inDoubt(u)
			continue
		}
		if detail := w.differs(u); detail != "" {
			w.refuse(ReasonResolvesDifferently, u.node, u.offset, string(u.kind)+" "+strings.TrimPrefix(u.schema+"."+u.name, ".")+" "+detail,
				"give the shadow database the same functions, operators and types in the same schemas as the engine's, or qualify the name with a schema that holds the same in both")
		}
	}
}

// inDoubt refuses an unqualified name that may refer to a user-defined object in the shadow database, when the client's
// path is not known.
func (w *walker) inDoubt(u nameUse) {
	shadow, found := w.r.functions.shadow, false
	switch u.kind {
	case useFunction:
		found = len(w.callable(shadow.Functions[u.name], u.call)) > 0
	case useOperator:
		found = w.applicable(shadow.Operators[u.name], u.operands)
	}
	if found {
		w.refuse(ReasonSettingsUncertain, u.node, u.offset, string(u.kind)+" "+u.name, "qualify the name with its schema")
	}
}

// differs returns how a name refers to something else in a replay; "" = it does not, or the server reports during the
// replay that it lacks the object.
func (w *walker) differs(u nameUse) string {
	source, shadow := w.r.functions.source, w.r.functions.shadow
	switch u.kind {
	case useType:
		return w.typeDiffers(u)
	case useOperator:
		return w.operatorDiffers(u)
	}
	originals := w.callable(source.Resolve(u.schema, u.name, w.path.Known()), u.call)
	copies := w.callable(shadow.Resolve(u.schema, u.name, w.replay.Known()), u.call)
	return overloadsDiffer(originals, copies, u.builtin, func(f, c *catalog.Function) bool {
		return sameSignature(f, c) && w.samePlace(u, f.Schema, c.Schema)
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

// samePlace reports whether an object in a schema of the shadow database replaces one of the engine's: it is in the same
// schema, or in one of shadow.search_path while the engine has no object of that name in that schema.
func (w *walker) samePlace(u nameUse, original, copied string) bool {
	if original == copied || !slices.Contains(w.r.options.ShadowPath, copied) {
		return original == copied
	}
	return !u.found(w.r.functions.source, []string{copied})
}

func (w *walker) operatorDiffers(u nameUse) string {
	in := func(x *catalog.Index, path resolve.Path) []catalog.Operator {
		var found []catalog.Operator
		for _, o := range x.Operators[u.name] {
			if (o.Schema == u.schema || u.schema == "" && path.Has(o.Schema)) && w.applicable([]catalog.Operator{o}, u.operands) {
				found = append(found, o)
			}
		}
		return found
	}
	return overloadsDiffer(in(w.r.functions.source, w.path), in(w.r.functions.shadow, w.replay), u.builtin, func(o, c catalog.Operator) bool {
		return withoutSchema(c.Operands, c.Schema) == withoutSchema(o.Operands, o.Schema) && c.Function.Name == o.Function.Name && w.samePlace(u, o.Schema, c.Schema)
	})
}

func (w *walker) typeDiffers(u nameUse) string {
	original, copied := w.r.functions.source.TypeIn(u.name, w.path.Schemas), w.r.functions.shadow.TypeIn(u.name, w.replay.Schemas)
	if original == copied || copied == "" || u.schema != "" || u.builtin {
		return ""
	}
	if original != "" && w.samePlace(u, original, copied) {
		return ""
	}
	return "is another one in the shadow database"
}
