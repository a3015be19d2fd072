package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/builtin"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// checker checks whether a relation or function of the shadow database is a correct copy for a neighbour: everything
// that it reads, directly or through calls, is in the neighbour's own schema or public. The result is "" or the fault,
// a text that continues after "a copy that".
//
// Objects may refer to each other in cycles. So the checker searches a graph: an object is correct if no path of
// references leads from it to a fault. The result depends neither on the order of checks nor on that of a map.
type checker struct {
	shadow     *catalog.Index
	names      *names // of the client's side: lists the public tables
	functions  *functions
	neighbours []string
	options    Options
	bodies     map[string]*Rules // by neighbour, for the analysis of bodies
	references map[object][]reference
	correct    map[object]bool
}

// object is a relation or a function of the shadow database, seen from a neighbour.
type object struct {
	neighbour string
	relation  Table
	function  *catalog.Function // nil = it is a relation
}

// reference is what an object reads or calls: another object, or a fault.
type reference struct {
	before string // begins the text of a fault at the other end
	fault  string // "" = none yet: to is to be checked
	to     object
}

func newChecker(o Options, n *names, f *functions) *checker {
	if o.Shadow == nil {
		return nil
	}
	return &checker{
		shadow: o.Shadow, names: n, functions: f, neighbours: o.Neighbours, options: o,
		bodies: map[string]*Rules{}, references: map[object][]reference{}, correct: map[object]bool{},
	}
}

// relation checks a relation and everything that a query on it reads.
func (j *checker) relation(neighbour string, root Table) string {
	return j.fault([]reference{{to: object{neighbour: neighbour, relation: root}}})
}

// function checks one function by its body and by its dependencies in the catalog.
func (j *checker) function(neighbour string, f *catalog.Function) string {
	return j.fault([]reference{{to: object{neighbour: neighbour, function: f}}})
}

// fault returns the first fault to which a path of references leads. Only the result of the whole search is kept: an
// object without a fault of its own may refer to one whose check has not ended.
func (j *checker) fault(from []reference) string {
	seen := map[object]bool{}
	fault := j.search(from, seen)
	if fault == "" {
		maps.Copy(j.correct, seen)
	}
	return fault
}

func (j *checker) search(from []reference, seen map[object]bool) string {
	for _, r := range from {
		fault := r.fault
		if fault == "" && !seen[r.to] && !j.correct[r.to] {
			seen[r.to] = true
			fault = j.search(j.refers(r.to), seen)
		}
		if fault != "" {
			return r.before + fault
		}
	}
	return ""
}

// refers returns the references of an object, in the order in which their faults are reported.
func (j *checker) refers(o object) []reference {
	known, done := j.references[o]
	if !done {
		if o.function != nil {
			known = j.functionReferences(o.neighbour, o.function)
		} else {
			known = j.relationReferences(o.neighbour, o.relation)
		}
		j.references[o] = known
	}
	return known
}

func (j *checker) relationReferences(neighbour string, root Table) (out []reference) {
	for _, t := range ident.Sorted(j.shadow.Closure(root)) {
		r := j.shadow.Relations[t]
		fault := ""
		switch {
		case t.Schema != neighbour && j.names.Kinds[t] != resolve.KindPublic:
			fault = "reads " + t.String()
		case r == nil:
			fault = fmt.Sprintf("reads %s, which is not in the shadow database's catalog", t)
		case r.Kind == catalog.KindForeign:
			fault = fmt.Sprintf("reads the foreign table %s", t)
		case r.RowSecurity:
			fault = fmt.Sprintf("reads %s, which has row level security", t)
		}
		if fault != "" {
			return append(out, reference{fault: fault})
		}
		for _, call := range r.Calls {
			out = append(out, j.calls(neighbour, call, "")...)
		}
		out = append(out, j.view(neighbour, r, fmt.Sprintf("reads the view %s, which ", t))...)
	}
	return out
}

// calls returns a reference to each overload of a function that an object of the shadow database calls.
func (j *checker) calls(neighbour string, name Table, before string) []reference {
	before += fmt.Sprintf("calls the function %s, which ", name)
	if name.Schema == "pg_catalog" && builtin.Of(name.Name) == builtin.Safe {
		return nil
	}
	found := j.shadow.Find(name.Schema, name.Name, nil)
	if j.functions.declared(name.Schema, name.Name) && !slices.ContainsFunc(found, j.names.isReader) {
		return nil
	}
	if len(found) == 0 {
		return []reference{{before: before, fault: "is not in the shadow database's catalog"}}
	}
	out := make([]reference, len(found))
	for i, f := range found {
		out[i] = reference{before: before, to: object{neighbour: neighbour, function: f}}
	}
	return out
}

func (j *checker) functionReferences(neighbour string, f *catalog.Function) (out []reference) {
	if isContrib(f) {
		return nil
	}
	if f.Schema != neighbour && slices.Contains(j.neighbours, f.Schema) {
		return []reference{{fault: "is in the schema of another neighbour"}}
	}
	relations, functions := map[Table]bool{}, map[Table]bool{}
	for _, t := range f.Reads {
		relations[t] = true
	}
	for _, c := range f.Calls {
		functions[c] = true
	}
	if executesSQL(f) && isForeignCode(f) {
		if fault := j.foreignBody(neighbour, f, relations); fault != "" {
			return []reference{{fault: fault}}
		}
	} else if f.Kind != catalog.KindAggregate { // of an aggregate, the support functions are in Calls
		if fault := j.body(neighbour, f, relations, functions); fault != "" {
			return []reference{{fault: fault}}
		}
	}
	for _, t := range ident.Sorted(relations) {
		out = append(out, reference{to: object{neighbour: neighbour, relation: t}})
	}
	for _, c := range ident.Sorted(functions) {
		out = append(out, j.calls(neighbour, c, "")...)
	}
	return out
}

// reach adds the relations that a correct copy reads, directly or through calls, to tables.
func (j *checker) reach(neighbour string, f *catalog.Function, tables map[Table]bool) {
	seen := map[object]bool{}
	for todo := []object{{neighbour: neighbour, function: f}}; len(todo) > 0; {
		o := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[o] {
			continue
		}
		seen[o] = true
		if o.function == nil {
			tables[o.relation] = true
		}
		for _, r := range j.refers(o) { // none is a fault
			todo = append(todo, r.to)
		}
	}
}
