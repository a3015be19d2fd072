package judge

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

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

// use records a name. Names in the body of a function are handled by the checker.
func (s *Statement) use(u nameUse) {
	if s.callees == nil && !s.printed {
		s.uses = append(s.uses, u)
	}
}

// values returns the possible types of the statement's values; nil = not known, in the body of a function.
func (s *Statement) values() *resolve.Values {
	if s.types == nil && s.root != nil {
		s.types = resolve.NewValues(s.root, s.query.Params, s.rules.functions.source, s.rules.functions.shadow)
	}
	return s.types
}

// callable returns the functions to which a call may refer, by its arguments.
func (s *Statement) callable(found []*catalog.Function, call *pg_query.FuncCall) []*catalog.Function {
	typed := slices.ContainsFunc(found, func(f *catalog.Function) bool { return len(f.Takes) > 0 })
	if !typed || s.values() == nil {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(f *catalog.Function) bool { return !s.values().Callable(f, call) })
}

// applicable reports whether an expression may refer to one of some operators, by its operands.
func (s *Statement) applicable(found []catalog.Operator, e resolve.Operands) bool {
	return slices.ContainsFunc(found, func(o catalog.Operator) bool {
		return o.Takes == [2]Table{} || s.values() == nil || s.values().Applicable(o, e)
	})
}

// replayPath returns the path for replays: the client's own, followed by shadow.search_path if a name of the statement
// is found nowhere else in the shadow database.
func (s *Statement) replayPath() resolve.Path {
	p := s.path
	if s.extendPath() {
		for _, schema := range s.rules.options.ShadowPath {
			if !slices.Contains(p.Schemas, schema) {
				p.Schemas = append(slices.Clone(p.Schemas), schema)
			}
		}
	}
	return p
}

// extendPath reports whether shadow.search_path is needed.
func (s *Statement) extendPath() bool {
	shadow := s.rules.functions.shadow
	client, engine := s.path.Schemas, s.rules.options.ShadowPath
	return len(engine) > 0 && slices.ContainsFunc(s.uses, func(u nameUse) bool {
		if u.schema != "" || u.builtin {
			return false
		}
		if shadow == nil {
			s.assume(AssumedShadowPath)
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
func (s *Statement) resolve() {
	s.replay = s.replayPath()
	if s.rules.functions.source == nil || s.rules.functions.shadow == nil {
		return
	}
	for _, u := range s.uses {
		if slices.ContainsFunc(s.refusals, func(r Refusal) bool { return r.Offset == int(u.offset) }) {
			continue // with a more specific reason
		}
		if u.schema == "" && s.path.Uncertain {
			s.inDoubt(u)
			continue
		}
		if detail := s.differs(u); detail != "" {
			s.Refuse(reasons.ResolvesDifferently, u.node, u.offset, string(u.kind)+" "+strings.TrimPrefix(u.schema+"."+u.name, ".")+" "+detail,
				"create the engine's functions, operators and types in the same schemas of the shadow database, or qualify the name with a schema that contains the same ones in both")
		}
	}
}

// inDoubt refuses an unqualified name that may refer to a user-defined object in the shadow database, when the client's
// path is not known.
func (s *Statement) inDoubt(u nameUse) {
	shadow, found := s.rules.functions.shadow, false
	switch u.kind {
	case useFunction:
		found = len(s.callable(shadow.Functions[u.name], u.call)) > 0
	case useOperator:
		found = s.applicable(shadow.Operators[u.name], u.operands)
	}
	if found {
		s.refuseUncertain(u.node, u.offset, string(u.kind)+" "+u.name, "")
	}
}

// differs returns how a name refers to something else in a replay; "" = it does not, or the server reports during the
// replay that it lacks the object.
func (s *Statement) differs(u nameUse) string {
	source, shadow := s.rules.functions.source, s.rules.functions.shadow
	switch u.kind {
	case useType:
		return s.typeDiffers(u)
	case useOperator:
		return s.operatorDiffers(u)
	}
	originals := s.callable(source.Resolve(u.schema, u.name, s.path.Known()), u.call)
	copies := s.callable(shadow.Resolve(u.schema, u.name, s.replay.Known()), u.call)
	if u.builtin {
		originals, copies = withoutWrappers(originals), withoutWrappers(copies)
	}
	return overloadsDiffer(originals, copies, u.builtin, func(f, c *catalog.Function) bool {
		return sameSignature(f, c) && s.samePlace(u, f.Schema, c.Schema)
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
func (s *Statement) samePlace(u nameUse, original, copied string) bool {
	if original == copied || !slices.Contains(s.rules.options.ShadowPath, copied) {
		return original == copied
	}
	return !u.found(s.rules.functions.source, []string{copied})
}

func (s *Statement) operatorDiffers(u nameUse) string {
	in := func(x *catalog.Index, path resolve.Path) []catalog.Operator {
		var found []catalog.Operator
		for _, o := range x.Operators[u.name] {
			if (o.Schema == u.schema || u.schema == "" && path.Has(o.Schema)) && s.applicable([]catalog.Operator{o}, u.operands) {
				found = append(found, o)
			}
		}
		return found
	}
	return overloadsDiffer(in(s.rules.functions.source, s.path), in(s.rules.functions.shadow, s.replay), u.builtin, func(o, c catalog.Operator) bool {
		return withoutSchema(c.Operands, c.Schema) == withoutSchema(o.Operands, o.Schema) && c.Function.Name == o.Function.Name && s.samePlace(u, o.Schema, c.Schema)
	})
}

func (s *Statement) typeDiffers(u nameUse) string {
	original, copied := s.rules.functions.source.TypeIn(u.name, s.path.Schemas), s.rules.functions.shadow.TypeIn(u.name, s.replay.Schemas)
	if original == copied || copied == "" || u.schema != "" || u.builtin {
		return ""
	}
	if original != "" && s.samePlace(u, original, copied) {
		return ""
	}
	return "refers to another type in the shadow database"
}
