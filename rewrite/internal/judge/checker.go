package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/builtin"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// checker checks whether a relation or function of the shadow database is a correct copy for a neighbour: everything that it
// reads, directly or through calls, is in the neighbour's own schema or public. The result is "" or the fault, a text that
// continues after "a copy that". Results are cached; an object whose check is in progress counts as correct.
type checker struct {
	shadow     *catalog.Index
	names      *names // of the client's side: lists the public tables
	functions  *functions
	neighbours []string
	options    Options
	bodies     map[string]*Rules // by neighbour, for the analysis of bodies
	relations  map[checkedRelation]string
	checked    map[checkedFunction]string
	uses       map[checkedFunction]*functionUse
}

type checkedRelation struct {
	neighbour string
	table     Table
}

type checkedFunction struct {
	neighbour string
	function  *catalog.Function
}

// functionUse holds the names in a function.
type functionUse struct {
	relations map[Table]bool
	functions map[Table]bool
}

func newChecker(o Options, n *names, f *functions) *checker {
	if o.Shadow == nil {
		return nil
	}
	return &checker{
		shadow: o.Shadow, names: n, functions: f, neighbours: o.Neighbours, options: o,
		bodies: map[string]*Rules{}, relations: map[checkedRelation]string{}, checked: map[checkedFunction]string{},
		uses: map[checkedFunction]*functionUse{},
	}
}

// relation checks a relation and everything that a query on it reads.
func (j *checker) relation(neighbour string, root Table) string {
	key := checkedRelation{neighbour, root}
	if fault, ok := j.relations[key]; ok {
		return fault
	}
	j.relations[key] = ""
	j.relations[key] = j.relationFault(neighbour, root)
	return j.relations[key]
}

func (j *checker) relationFault(neighbour string, root Table) string {
	for _, t := range ident.Sorted(j.shadow.Closure(root)) {
		if t.Schema != neighbour && j.names.Kinds[t] != resolve.KindPublic {
			return "reads " + t.String()
		}
		r := j.shadow.Relations[t]
		switch {
		case r == nil:
			return fmt.Sprintf("reads %s, which is not in the shadow database's catalog", t)
		case r.Kind == catalog.KindForeign:
			return fmt.Sprintf("reads the foreign table %s", t)
		case r.RowSecurity:
			return fmt.Sprintf("reads %s, which has row level security", t)
		}
		for _, call := range r.Calls {
			if fault := j.call(neighbour, call); fault != "" {
				return fmt.Sprintf("calls the function %s, which %s", call, fault)
			}
		}
		if fault := j.view(neighbour, r); fault != "" {
			return fmt.Sprintf("reads the view %s, which %s", t, fault)
		}
	}
	return ""
}

// call checks every overload of a function that an object of the shadow database calls.
func (j *checker) call(neighbour string, name Table) string {
	if name.Schema == "pg_catalog" && builtin.Of(name.Name) == builtin.Safe {
		return ""
	}
	found := j.shadow.Find(name.Schema, name.Name, nil)
	if j.functions.declared(name.Schema, name.Name) && !slices.ContainsFunc(found, j.names.isReader) {
		return ""
	}
	if len(found) == 0 {
		return "is not in the shadow database's catalog"
	}
	for _, f := range found {
		if fault := j.function(neighbour, f); fault != "" {
			return fault
		}
	}
	return ""
}

// function checks one function by its body and by its dependencies in the catalog.
func (j *checker) function(neighbour string, f *catalog.Function) string {
	key := checkedFunction{neighbour, f}
	if fault, ok := j.checked[key]; ok {
		return fault
	}
	use := &functionUse{relations: map[Table]bool{}, functions: map[Table]bool{}}
	j.checked[key], j.uses[key] = "", use
	j.checked[key] = j.functionFault(neighbour, f, use)
	return j.checked[key]
}

func (j *checker) functionFault(neighbour string, f *catalog.Function, use *functionUse) string {
	if isContrib(f) {
		return ""
	}
	if f.Schema != neighbour && slices.Contains(j.neighbours, f.Schema) {
		return "is in the schema of another neighbour"
	}
	for _, t := range f.Reads {
		use.relations[t] = true
	}
	for _, c := range f.Calls {
		use.functions[c] = true
	}
	if f.Kind != catalog.KindAggregate { // of an aggregate, the support functions are in Calls
		if fault := j.body(neighbour, f, use); fault != "" {
			return fault
		}
	}
	for _, t := range ident.Sorted(use.relations) {
		if fault := j.relation(neighbour, t); fault != "" {
			return fault
		}
	}
	for _, c := range ident.Sorted(use.functions) {
		if fault := j.call(neighbour, c); fault != "" {
			return fmt.Sprintf("calls the function %s, which %s", c, fault)
		}
	}
	return ""
}

// reach adds the relations that a correct copy reads, directly or through calls, to tables.
func (j *checker) reach(neighbour string, f *catalog.Function, tables map[Table]bool) {
	seen := map[*catalog.Function]bool{}
	for todo := []*catalog.Function{f}; len(todo) > 0; {
		f, todo = todo[len(todo)-1], todo[:len(todo)-1]
		use := j.uses[checkedFunction{neighbour, f}]
		if seen[f] || use == nil {
			continue
		}
		seen[f] = true
		maps.Copy(tables, use.relations)
		for c := range use.functions {
			todo = append(todo, j.shadow.Find(c.Schema, c.Name, nil)...)
		}
	}
}

// bodyPath returns the path of a function's own SET search_path; without one the names in its body depend on the session.
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
// protected ones: a refusal is a fault here.
func (j *checker) body(neighbour string, f *catalog.Function, use *functionUse) string {
	path, fault := bodyPath(f)
	if fault != "" {
		return fault
	}
	statements, fault := body.Statements(j.options.Limits, f.Language, f.Body)
	if fault != "" {
		return fault
	}
	s := j.bodyRules(neighbour).statement(capture.Query{Params: make([]capture.Param, maxFunctionArguments)}, path)
	s.callees = use.functions
	for _, part := range statements {
		if part.Dynamic {
			return executesText
		}
		j.options.Walk(s, part.Node.ProtoReflect())
	}
	if len(s.refusals) > 0 { // the first one is sufficient
		return describeBody(s.refusals[0])
	}
	maps.Copy(use.relations, s.Protected)
	maps.Copy(use.relations, s.Public)
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
	if r.Reason == ReasonUnsupportedNode {
		return notReplayable + r.Node
	}
	return notReplayable + r.Detail
}
