package judge

import (
	"maps"
	"slices"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// bodyPath returns the path of a function's own SET search_path; without one the names in its body depend on the
// session.
func bodyPath(f *catalog.Function) (resolve.Path, string) {
	path := resolve.Path{Uncertain: true}
	for name, value := range f.Settings {
		if name != "search_path" {
			return path, "sets " + name
		}
		schemas, ok := ident.ParseList(value)
		if !ok || slices.Contains(schemas, resolve.UserSchema) {
			return path, "sets a search_path that depends on the session"
		}
		path = resolve.Path{Schemas: schemas}
	}
	return path, ""
}

// maxFunctionArguments is FUNC_MAX_ARGS: $1 to $100 are arguments in a body.
const maxFunctionArguments = 100

// body checks the queries and expressions of a function like a client's query, with the neighbour's relations as the
// protected ones: a refusal is a fault here. It adds the names in the body to relations and functions.
func (j *checker) body(neighbour string, f *catalog.Function, relations, functions map[Table]bool) string {
	path, fault := bodyPath(f)
	if fault != "" {
		return fault
	}
	statements, fault := body.Statements(j.options.Limits, f.Language, f.Body)
	if fault != "" {
		return fault
	}
	atomic := f.Language == "sql" && body.IsAtomic(f.Body)
	if atomic { // the server prints names outside pg_catalog with their schemas
		path = resolve.Path{}
	}
	s := j.bodyRules(neighbour).statement(capture.Query{Params: make([]capture.Param, maxFunctionArguments)}, path)
	s.body(functions, atomic)
	for _, part := range statements {
		if part.Dynamic {
			return executesText
		}
		j.options.Walk(s, part.Node.ProtoReflect())
	}
	if len(s.refusals) > 0 { // the first one is sufficient
		return describeBody(s.refusals[0])
	}
	maps.Copy(relations, s.Protected)
	maps.Copy(relations, s.Public)
	return ""
}

// bodyRules resolve names as in a body in the shadow database: every relation of the neighbour is protected.
func (j *checker) bodyRules(neighbour string) *Rules {
	if r := j.bodies[neighbour]; r != nil {
		return r
	}
	n := &names{Relations: resolve.NewRelations(j.shadow, nil, j.options.Public, nil), readers: j.names.readers}
	for t := range j.shadow.Relations {
		if t.Schema == neighbour {
			n.Kinds[t], n.Protected[t.Name] = resolve.KindProtected, true
		}
	}
	r := &Rules{
		options: j.options, names: n,
		functions: &functions{source: j.shadow, builtinOperators: j.functions.builtinOperators, allowed: j.functions.allowed},
	}
	j.bodies[neighbour] = r
	return r
}

// executesText is the fault of a body that executes a text built at run time.
const executesText = "executes a text that is built at run time (EXECUTE)"

// notReplayable begins the fault of a body or view with a refusal.
const notReplayable = "contains a part that cannot be replayed: "

// describeBody returns the fault of a statement of a body.
func describeBody(r Refusal) string {
	if r.Reason == reasons.UnsupportedNode {
		return notReplayable + r.Node
	}
	return notReplayable + r.Detail
}
