package rewrite

import (
	"slices"
	"strings"
)

// readers finds, in one catalog, the functions that read a protected table, and the relations that call such a function,
// however many steps away. names are those of the protected tables and of what depends on them. What the catalog knows
// exactly (BEGIN ATOMIC bodies, views) counts as it is; in any other body a name counts wherever it stands as a word. So
// this finds too much rather than too little: only dynamic SQL that puts a name together escapes it.
func (x *catalogIndex) readers(names map[string]bool) (map[*Function]bool, map[Table]bool) {
	s := &readerSearch{
		functions: map[*Function]bool{}, relations: map[Table]bool{},
		byWord: map[string][]*Function{}, bodies: map[*Function]string{},
		callers: map[Table][]*Function{}, readers: map[string][]*Function{},
		relationCallers: map[Table][]Table{}, relationReaders: map[Table][]Table{},
	}
	s.index(x.catalog)
	for name := range names {
		s.named(name)
	}
	for len(s.todo) > 0 {
		next := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		next()
	}
	return s.functions, s.relations
}

// readerSearch goes from the protected names up to whatever reads them.
type readerSearch struct {
	functions map[*Function]bool // found
	relations map[Table]bool     // found
	todo      []func()

	byWord          map[string][]*Function // by the words of their bodies, in lower case
	bodies          map[*Function]string   // in lower case
	callers         map[Table][]*Function
	readers         map[string][]*Function // by the names of the relations that they read
	relationCallers map[Table][]Table
	relationReaders map[Table][]Table
}

func (s *readerSearch) index(c *Catalog) {
	for i := range c.Functions {
		f := &c.Functions[i]
		for _, t := range f.Reads {
			s.readers[t.Name] = append(s.readers[t.Name], f)
		}
		for _, t := range f.Calls {
			s.callers[t] = append(s.callers[t], f)
		}
		if f.Body == "" || isAtomic(f.Body) {
			continue
		}
		body := strings.ToLower(f.Body)
		if strings.Contains(body, "u&") { // names in it may be spelt with escapes
			s.todo = append(s.todo, func() { s.function(f) })
		}
		s.bodies[f] = body
		words := strings.FieldsFunc(body, func(r rune) bool { return r < 0x80 && !isNameByte(byte(r)) })
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

// named marks every function whose body mentions a name, or that reads a relation of it.
func (s *readerSearch) named(name string) {
	for _, f := range s.readers[name] {
		s.function(f)
	}
	word := strings.ToLower(name)
	if !strings.ContainsFunc(word, func(r rune) bool { return r < 0x80 && !isNameByte(byte(r)) }) {
		for _, f := range s.byWord[word] {
			s.function(f)
		}
		return
	}
	for f, body := range s.bodies {
		if containsWord(body, word) {
			s.function(f)
		}
	}
}

func (s *readerSearch) function(f *Function) {
	if s.functions[f] {
		return
	}
	s.functions[f] = true
	s.todo = append(s.todo, func() {
		name := Table{f.Schema, f.Name}
		for _, caller := range s.callers[name] {
			s.function(caller)
		}
		for _, t := range s.relationCallers[name] {
			s.relation(t)
		}
		s.named(f.Name)
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
		s.named(t.Name)
	})
}

// isAtomic tells the body of an SQL function that the server parsed when it was made, as pg_get_function_sqlbody
// prints it: what it reads and calls is in the catalog.
func isAtomic(body string) bool {
	return strings.HasPrefix(body, "BEGIN ATOMIC") || strings.HasPrefix(body, "RETURN ")
}
