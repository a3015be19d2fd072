package judge

import (
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// readersIn finds, in one catalog, the functions that read a protected table, and the relations that call such a
// function, directly or transitively. protected are the relations to start from; one without a schema stands for all
// schemas. Exact dependencies from the catalog (BEGIN ATOMIC bodies, views) are used as they are; SQL and PL/pgSQL
// bodies are parsed, and of every other body for which words returns true the words count as names. A name without a
// schema counts as any relation or function of that name. definers count as readers, too.
func readersIn(c *catalog.Catalog, protected map[Table]bool, limits body.Limits, f *functions, words func(*catalog.Function) bool, definers ...*catalog.Function) (map[*catalog.Function]bool, map[Table]bool) {
	s := &readerSearch{
		limits: limits, known: f, words: words,
		functions: map[*catalog.Function]bool{}, relations: map[Table]bool{},
		byWord: map[string][]*catalog.Function{}, names: map[*catalog.Function]*body.Names{},
		callers: map[Table][]*catalog.Function{}, readers: map[string][]reader{},
		relationCallers: map[Table][]Table{}, relationReaders: map[Table][]Table{},
	}
	s.index(c)
	for t := range protected {
		s.namedRelation(t)
	}
	for _, g := range definers {
		s.function(g)
	}
	for len(s.todo) > 0 {
		next := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		next()
	}
	return s.functions, s.relations
}

// reader is a function that reads a relation according to the catalog.
type reader struct {
	function *catalog.Function
	reads    Table
}

// readerSearch follows references from the protected names to all readers.
type readerSearch struct {
	limits    body.Limits
	known     *functions
	words     func(*catalog.Function) bool
	functions map[*catalog.Function]bool // found
	relations map[Table]bool             // found
	todo      []func()

	byWord          map[string][]*catalog.Function    // by the words in their bodies, in lower case
	escaped         []*catalog.Function               // whose bodies may contain any name in escaped form
	names           map[*catalog.Function]*body.Names // of parsed bodies; nil = it could not be parsed
	callers         map[Table][]*catalog.Function
	readers         map[string][]reader // by the names of the relations that they read
	relationCallers map[Table][]Table
	relationReaders map[Table][]Table
}

func (s *readerSearch) index(c *catalog.Catalog) {
	for i := range c.Functions {
		f := &c.Functions[i]
		for _, t := range f.Reads {
			s.readers[t.Name] = append(s.readers[t.Name], reader{f, t})
		}
		for _, t := range f.Calls {
			s.callers[t] = append(s.callers[t], f)
		}
		if f.Body == "" || f.Language == "sql" && body.IsAtomic(f.Body) {
			continue
		}
		text := strings.ToLower(f.Body)
		if strings.Contains(text, "u&") || strings.Contains(text, `\`) {
			s.escaped = append(s.escaped, f)
		}
		words := bodyWords(text)
		slices.Sort(words)
		for _, word := range slices.Compact(words) {
			s.byWord[word] = append(s.byWord[word], f)
		}
	}
	for _, r := range c.Relations {
		for _, t := range r.Reads {
			s.relationReaders[t] = append(s.relationReaders[t], r.Table)
		}
		for _, t := range r.Calls {
			s.relationCallers[t] = append(s.relationCallers[t], r.Table)
		}
	}
}

// bodyWords returns the words of a text, including keywords and words in strings and comments.
func bodyWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r < 0x80 && !ident.IsNameByte(byte(r)) })
}

// candidates returns the functions whose bodies may contain a name: those with all of its words.
func (s *readerSearch) candidates(name string) []*catalog.Function {
	found := s.escaped
	if words := bodyWords(strings.ToLower(name)); len(words) > 0 {
		found = slices.Concat(found, s.byWord[words[0]])
	}
	return found
}

// namesIn returns the names in the body of a function; nil = it cannot be parsed, so that its words count.
func (s *readerSearch) namesIn(f *catalog.Function) *body.Names {
	names, done := s.names[f]
	if !done {
		names, _ = body.NamesOf(s.limits, f.Language, f.Body, s.known.textArguments)
		s.names[f] = names
	}
	return names
}

// namedRelation marks every function that reads a relation; one without a schema stands for all relations of its name.
func (s *readerSearch) namedRelation(t Table) {
	for _, r := range s.readers[t.Name] {
		if t.Schema == "" || r.reads == t {
			s.function(r.function)
		}
	}
	s.named(t.Name, func(names *body.Names) bool {
		return names.Relation(t) || t.Schema == "" && names.RelationOfAnySchema(t.Name)
	})
}

// named marks every function whose body names an object.
func (s *readerSearch) named(name string, names func(*body.Names) bool) {
	for _, f := range s.candidates(name) {
		if s.functions[f] {
			continue
		}
		found := s.namesIn(f)
		if found == nil && s.words(f) && ident.ContainsWord(strings.ToLower(f.Body), strings.ToLower(name)) || found != nil && names(found) {
			s.function(f)
		}
	}
}

func (s *readerSearch) function(f *catalog.Function) {
	if s.functions[f] {
		return
	}
	s.functions[f] = true
	s.todo = append(s.todo, func() {
		name := Table{Schema: f.Schema, Name: f.Name}
		for _, caller := range s.callers[name] {
			s.function(caller)
		}
		for _, t := range s.relationCallers[name] {
			s.relation(t)
		}
		s.named(f.Name, func(names *body.Names) bool { return names.Function(name) })
	})
}

func (s *readerSearch) relation(t Table) {
	if s.relations[t] {
		return
	}
	s.relations[t] = true
	s.todo = append(s.todo, func() {
		for _, reader := range s.relationReaders[t] {
			s.relation(reader)
		}
		s.namedRelation(t)
	})
}
