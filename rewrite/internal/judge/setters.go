package judge

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/builtin"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// setters holds which settings the functions of the engine's catalog change and read, and which temporary relations they
// create, by their names: overloads count together. A function's own SET clause ends with the call and is none of these.
// It is read-only after construction.
type setters struct {
	functions *functions
	facts     map[string]*setterFacts // of functions that change or read settings, or may
	all       setterFacts             // together
	implicit  setterFacts             // of functions that run without being called by name
	reading   setterFacts             // of these, those that a statement which only reads can run
}

// setterFacts are what a function does, directly or through calls.
type setterFacts struct {
	changes map[string]bool
	reads   map[string]bool
	any     bool            // it changes settings whose names are not constants
	dynamic bool            // it executes texts that are built at run time
	unread  bool            // it is not in SQL or PL/pgSQL
	temps   map[string]bool // temporary relations that it creates
	temp    bool            // it creates some whose names are not constants
}

// newSetters reads the bodies of all functions. Without a catalog there are no facts.
func newSetters(f *functions) *setters {
	s := &setters{functions: f, facts: map[string]*setterFacts{}}
	if f.source == nil {
		return s
	}
	calls := map[string]map[string]bool{} // by callee
	for i := range f.source.Catalog.Functions {
		g := &f.source.Catalog.Functions[i]
		if isContrib(g) {
			continue
		}
		for _, callee := range s.read(g) {
			if calls[callee] == nil {
				calls[callee] = map[string]bool{}
			}
			calls[callee][g.Name] = true
		}
	}
	s.spread(calls)
	for _, facts := range s.facts {
		s.all.add(facts)
	}
	for name, trigger := range s.hidden() {
		if facts := s.facts[name]; facts != nil {
			if s.implicit.add(facts); !trigger {
				s.reading.add(facts)
			}
		}
	}
	return s
}

// setsInText finds SET, RESET and set_config in a body of another language than SQL.
var setsInText = regexp.MustCompile(`(?i)\bset_config\b|\b(re)?set\s+[a-z_"]`)

// tempInText finds the creation of temporary relations there.
var tempInText = regexp.MustCompile(`(?i)\btemp(orary)?\b|\bpg_temp`)

// read records the facts of one function by itself, and returns the functions that it calls.
func (s *setters) read(f *catalog.Function) (calls []string) {
	var facts setterFacts
	for _, t := range f.Calls {
		calls = append(calls, t.Name)
	}
	switch {
	case f.Kind == catalog.KindAggregate:
	case f.Language == "sql" || f.Language == "plpgsql":
		code := sqltext.ReadCode(f.Body)
		names, others := code.Temporaries(f.Body)
		facts = setterFacts{changes: setOf(code.Names), reads: setOf(code.Reads), any: code.Any, dynamic: code.Dynamic, temps: setOf(names), temp: others}
		calls = append(calls, code.Calls...)
	default:
		facts = setterFacts{unread: true, any: setsInText.MatchString(f.Body), temp: tempInText.MatchString(f.Body)}
	}
	if !facts.none() {
		s.at(f.Name).add(&facts)
	}
	return calls
}

// spread adds the facts of functions to those that call them.
func (s *setters) spread(callers map[string]map[string]bool) {
	for todo := slices.Collect(maps.Keys(s.facts)); len(todo) > 0; {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for caller := range callers[name] {
			if s.at(caller).add(s.facts[name]) {
				todo = append(todo, caller)
			}
		}
	}
}

func (s *setters) at(name string) *setterFacts {
	if s.facts[name] == nil {
		s.facts[name] = &setterFacts{}
	}
	return s.facts[name]
}

// hidden returns the functions that a statement may run without their names before a parenthesis: of triggers, views,
// policies, operators, types and casts, those that x.f may call, and those that a proxy takes for built-in ones. Those
// with the value true are only of triggers.
func (s *setters) hidden() map[string]bool {
	c, names := s.functions.source.Catalog, map[string]bool{}
	add := func(tables ...Table) {
		for _, t := range tables {
			names[t.Name] = false
		}
	}
	for _, f := range c.Functions {
		trigger := f.Result == "trigger" || f.Result == "event_trigger"
		if f.OfRow || trigger || sqltext.Common(f.Name) {
			names[f.Name] = trigger
		}
	}
	for _, r := range c.Relations {
		add(r.Calls...)
	}
	for _, o := range c.Operators {
		add(o.Function)
	}
	for _, t := range c.Types {
		add(t.Calls...)
	}
	add(c.ImplicitCasts...)
	return names
}

// reads returns the settings that functions of a name read by current_setting, sorted.
func (s *setters) reads(name string) []string {
	if facts := s.facts[name]; facts != nil {
		return slices.Sorted(maps.Keys(facts.reads))
	}
	return nil
}

// settle returns a query with a doubt in which no function has a name: those that change settings or create temporary
// relations, according to the catalog, are replaced by these. Without a catalog, every function that is not declared may
// change the settings of applications, as claims are, but is assumed not to change the server's own, and to create no
// temporary relation.
func (s *setters) settle(q capture.Query) capture.Query {
	q.Temporary, q.Doubt.Temporary = s.temporaries(q)
	q.Doubt = s.settings(q.Doubt)
	return q
}

// temporaries returns the relations that may be temporary, and whether others may be, after the functions that the
// session called or that writing ran, and those that reading can run.
func (s *setters) temporaries(q capture.Query) (names []string, others bool) {
	var of setterFacts
	of.add(&s.reading)
	for _, c := range q.Doubt.Calls {
		for _, function := range c.Functions {
			if function == capture.ImplicitCode {
				of.add(&setterFacts{temps: s.all.temps, temp: s.implicit.temp})
			} else {
				of.add(s.of(function))
			}
		}
	}
	if names = q.Temporary; len(of.temps) > 0 {
		names = slices.Concat(names, slices.Collect(maps.Keys(of.temps)))
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return names, q.Doubt.Temporary || of.temp
}

func (s *setters) settings(d capture.Doubt) capture.Doubt {
	settled := capture.Doubt{Temporary: d.Temporary, Names: slices.Clone(d.Names)}
	for _, c := range d.Calls {
		var of setterFacts
		kept := capture.Calls{Except: c.Except, Only: c.Only}
		for _, function := range c.Functions {
			switch {
			case function == capture.ImplicitCode: // always counts
			case function == capture.UnknownCode || function == capture.UnknownFunction:
				kept.Functions = append(kept.Functions, function)
			case s.functions.source == nil && !s.functions.knownByName(function):
				kept.Functions = append(kept.Functions, capture.UnknownFunction)
			default:
				of.add(s.of(function))
			}
		}
		if of.any || of.dynamic {
			kept.Functions = append(kept.Functions, capture.UnknownCode)
		}
		if len(kept.Functions) > 0 {
			slices.Sort(kept.Functions)
			kept.Functions = slices.Compact(kept.Functions)
			settled.Calls = append(settled.Calls, kept)
		}
		for name := range of.changes {
			if c.Concerns(name) && !capture.IsReported(name) {
				settled.Names = append(settled.Names, name)
			}
		}
	}
	for name := range s.implicit.changes {
		if !capture.IsReported(name) {
			settled.Names = append(settled.Names, name)
		}
	}
	slices.Sort(settled.Names)
	settled.Names = slices.Compact(settled.Names)
	return settled
}

// knownByName reports whether a name is that of a built-in function or a declared one.
func (f *functions) knownByName(name string) bool {
	return builtin.Of(name) != builtin.Unlisted || f.declaredAnywhere(name)
}

// of returns the facts of functions of a name. The texts that a declared function executes are assumed to change
// nothing.
func (s *setters) of(function string) *setterFacts {
	if function == capture.UnlistedFunctions {
		return &s.all
	}
	facts := s.facts[function]
	if facts == nil {
		return &setterFacts{}
	}
	if facts.dynamic && s.functions.declaredAnywhere(function) {
		declared := *facts
		declared.dynamic, declared.temp = false, false
		return &declared
	}
	return facts
}

// assumes reports whether settle has to assume what functions do.
func (s *setters) assumes(d capture.Doubt) bool {
	if s.implicit.any || s.implicit.dynamic {
		return true
	}
	return slices.ContainsFunc(d.Calls, func(c capture.Calls) bool {
		return slices.ContainsFunc(c.Functions, func(function string) bool {
			facts := s.facts[function]
			return s.functions.source == nil || facts != nil && (facts.unread || facts.dynamic)
		})
	})
}

func (f *setterFacts) none() bool {
	return len(f.changes) == 0 && len(f.reads) == 0 && len(f.temps) == 0 && !f.any && !f.dynamic && !f.unread && !f.temp
}

// add adds the facts of another function, and reports whether some are new.
func (f *setterFacts) add(other *setterFacts) bool {
	before := f.size()
	if f.changes == nil {
		f.changes, f.reads, f.temps = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	maps.Copy(f.changes, other.changes)
	maps.Copy(f.reads, other.reads)
	maps.Copy(f.temps, other.temps)
	f.any, f.dynamic, f.unread, f.temp = f.any || other.any, f.dynamic || other.dynamic, f.unread || other.unread, f.temp || other.temp
	return before != f.size()
}

// size counts the facts.
func (f *setterFacts) size() int {
	n := len(f.changes) + len(f.reads) + len(f.temps)
	for _, fact := range [...]bool{f.any, f.dynamic, f.unread, f.temp} {
		if fact {
			n++
		}
	}
	return n
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[strings.Clone(name)] = true
	}
	return set
}
