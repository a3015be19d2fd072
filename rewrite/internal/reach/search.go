package reach

import (
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Start says from where a search follows the edges backwards, and which of them.
type Start struct {
	Relations map[Table]bool // one without a schema stands for all schemas
	Routines  []Table        // the same
	Functions []*catalog.Function
	// Words reports whether the words of a body that is not parsed count as names; nil = always.
	Words func(*catalog.Function) bool
	// Planned restricts the search to what the server runs when it plans a statement: it inlines SQL functions and
	// views.
	Planned bool
	// Executed leaves out the materialized views: a query on one runs nothing of its definition.
	Executed bool
}

// Set holds all from which the start of a search is reached.
type Set struct {
	Functions map[*catalog.Function]bool
	Relations map[Table]bool          // by reading them
	Changes   map[Table]catalog.Event // by these events on them
	Types     map[Table]bool          // by making, printing or comparing their values
	routines  map[Table]bool          // the functions, by name, and the routines of the start
	words     map[string]bool         // the names, without schemas, in lower case
}

// Has reports whether a function of a name is in the set.
func (s *Set) Has(routine Table) bool {
	return s.routines[routine] || s.routines[Table{Schema: "", Name: routine.Name}]
}

// Names returns the names without schemas of all that is in the set, except of what only has an effect that is not
// one of Change.
func (s *Set) Names() map[string]bool {
	all := map[string]bool{}
	for _, names := range []map[Table]bool{s.routines, s.Relations, s.Types} {
		for t := range names {
			all[t.Name] = true
		}
	}
	for t := range s.Changes {
		all[t.Name] = true
	}
	return all
}

// From returns all from which a start is reached, directly or transitively. Exact dependencies from the catalog are used
// as they are; SQL and PL/pgSQL bodies are parsed, and of every other body for which Words returns true the words count
// as names. A name without a schema counts as any relation or function of that name.
func (g *Graph) From(start Start) *Set {
	s := &search{Graph: g, start: start, set: &Set{
		Functions: map[*catalog.Function]bool{}, Relations: map[Table]bool{}, Changes: map[Table]catalog.Event{}, Types: map[Table]bool{},
		routines: map[Table]bool{}, words: map[string]bool{},
	}}
	for t := range start.Relations {
		s.set.words[strings.ToLower(t.Name)] = true
		s.namedRelation(t)
	}
	for _, t := range start.Routines {
		s.set.routines[t] = true
		if g.index != nil {
			for _, f := range g.index.Functions[t.Name] {
				if t.Schema == "" || t.Schema == f.Schema {
					s.function(f)
				}
			}
		}
		s.calling(t)
	}
	for _, f := range start.Functions {
		s.function(f)
	}
	for len(s.todo) > 0 {
		next := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		next()
	}
	maps.Copy(s.set.Relations, start.Relations)
	for name := range s.set.Names() {
		s.set.words[strings.ToLower(name)] = true
	}
	return s.set
}

// search follows references from the names of a start to all that uses them.
type search struct {
	*Graph
	start Start
	set   *Set
	todo  []func()
}

// namedRelation marks every function that reads a relation; one without a schema stands for all relations of its name.
func (s *search) namedRelation(t Table) {
	for _, r := range s.readers[t.Name] {
		if t.Schema == "" || r.reads == t {
			s.caller(r.function)
		}
	}
	for _, reader := range s.relationReaders[t] {
		s.relation(reader)
	}
	for _, e := range s.effectReaders[t] {
		s.effect(e)
	}
	s.named(t.Name, func(names *body.Names) bool {
		return names.Relation(t) || t.Schema == "" && names.RelationOfAnySchema(t.Name)
	})
}

// named marks every function whose body names an object, and every relation with an expression that may execute a text
// with the name.
func (s *search) named(name string, names func(*body.Names) bool) {
	for _, f := range s.candidates(name) {
		if s.set.Functions[f] {
			continue
		}
		found := s.namesIn(f)
		if found == nil && (s.start.Words == nil || s.start.Words(f)) && ident.ContainsWord(strings.ToLower(f.Body), strings.ToLower(name)) || found != nil && names(found) {
			s.caller(f)
		}
	}
	for _, x := range s.executed {
		if ident.ContainsWord(x.text, strings.ToLower(name)) {
			s.change(x.of, x.events)
		}
	}
}

// caller adds a function that uses something of the set.
func (s *search) caller(f *catalog.Function) {
	if !s.start.Planned || f.Language == "sql" {
		s.function(f)
	}
}

func (s *search) function(f *catalog.Function) {
	if s.set.Functions[f] {
		return
	}
	s.set.Functions[f] = true
	name := Table{Schema: f.Schema, Name: f.Name}
	s.set.routines[name] = true
	s.todo = append(s.todo, func() { s.calling(name) })
}

// calling adds all that calls a routine.
func (s *search) calling(name Table) {
	for _, caller := range s.callers[name] {
		s.caller(caller)
	}
	for _, t := range s.relationCallers[name] {
		s.relation(t)
	}
	for _, e := range s.effectCallers[name] {
		s.effect(e)
	}
	for _, t := range s.types[name] {
		s.valueOf(t)
	}
	for _, o := range s.operators[name] {
		s.operator(Table{Schema: o.Schema, Name: o.Name})
	}
	for _, c := range s.casts[name] {
		t := c.From
		if t.Schema == "pg_catalog" {
			t = c.To
		}
		s.named(t.Name, func(names *body.Names) bool { return names.Relation(t) })
	}
	s.named(name.Name, func(names *body.Names) bool {
		return names.Function(name) || name.Schema == "" && names.FunctionOfAnySchema(name.Name)
	})
}

// operator adds the functions whose bodies use an operator.
func (s *search) operator(o Table) {
	for i := range s.index.Catalog.Functions {
		if f := &s.index.Catalog.Functions[i]; !s.set.Functions[f] && strings.Contains(f.Body, o.Name) {
			if names := s.namesIn(f); names != nil && names.Operator(o) {
				s.caller(f)
			}
		}
	}
}

// effect adds a relation by one of its effects.
func (s *search) effect(e effect) {
	if !s.start.Planned || e.Column != "" || len(e.Writes) > 0 || e.Events&catalog.Select != 0 {
		s.change(e.of, e.Events)
	}
}

// change adds events on a relation.
func (s *search) change(t Table, events catalog.Event) {
	if events&catalog.Select != 0 {
		s.relation(t)
	}
	if s.set.Changes[t]&events == events {
		return
	}
	s.set.Changes[t] |= events
	s.todo = append(s.todo, func() {
		for _, reader := range s.relationReaders[t] { // views that can be updated, and tables with partitions
			if r := s.index.Relations[reader]; r.Kind == catalog.KindView || r.Kind != catalog.KindMaterialized && !r.RowSecurity {
				s.change(reader, events&^catalog.Select)
			}
		}
		if events&catalog.Change == 0 {
			return
		}
		for _, e := range s.effectWriters[t] {
			s.effect(e)
		}
		s.named(t.Name, func(names *body.Names) bool { return names.Changes(t)&events != 0 })
	})
}

// valueOf adds a type.
func (s *search) valueOf(t Table) {
	if s.set.Types[t] {
		return
	}
	s.set.Types[t] = true
	s.todo = append(s.todo, func() {
		for _, f := range s.typed[t] {
			s.caller(f)
		}
		for _, e := range s.effectTypes[t] {
			s.effect(e)
		}
		s.named(t.Name, func(names *body.Names) bool { return names.Relation(t) })
	})
}

func (s *search) relation(t Table) {
	r := s.index.Relations[t]
	if s.set.Relations[t] || s.start.Executed && r != nil && r.Kind == catalog.KindMaterialized {
		return
	}
	s.set.Relations[t] = true
	s.todo = append(s.todo, func() { s.namedRelation(t) })
}

// Speaks reports whether a text contains the name of something in the set as a word.
func (s *Set) Speaks(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return s.words[w] })
}
