package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Snapshot is the version of an engine at one moment. It is safe for concurrent use.
type Snapshot struct {
	base   [sha256.Size]byte // of what concerns every query: versions and settings, or the engine's answer
	byName map[string][]*function
	views  map[ident.Table]view
	limits body.Limits
	traits *traits // nil = not known

	mu     sync.Mutex        // guards epochs, and the callees of functions
	epochs map[string]string // by Calls
}

// function is one user-defined function, or one of an extension.
type function struct {
	ident.Table
	arguments string // identifies an overload
	language  string
	body      string
	path      []string // its own search_path; nil = that of its caller
	own       [sha256.Size]byte
	calls     []*function // by the catalog's dependencies

	read  bool        // names is set
	names *body.Names // in the body; nil = it cannot be parsed
}

// view is a view, or a table with policies.
type view struct {
	calls []*function
	reads []ident.Table
}

func newSnapshot(limits body.Limits) *Snapshot {
	return &Snapshot{limits: limits, byName: map[string][]*function{}, views: map[ident.Table]view{}, epochs: map[string]string{}}
}

// Answered returns the Snapshot of an engine that gave these answers when it was asked for its version: every query has
// the same epoch, and no functions are known.
func Answered(answers ...string) *Snapshot {
	s := newSnapshot(body.Limits{})
	s.base = sha256.Sum256([]byte("answer\x00" + strings.Join(answers, "\x00")))
	return s
}

func (s *Snapshot) add(f *function) { s.byName[f.Name] = append(s.byName[f.Name], f) }

// Calls is what a query calls and reads, and where its names are looked up.
type Calls struct {
	Functions []string      // as written: name or schema.name
	Implied   []ident.Table // functions of operators and types
	Relations []ident.Table // a relation without a schema is looked up under Path
	Path      []string      // schemas besides pg_catalog, those of the copies included
}

// mostEpochs bounds the epochs that a Snapshot keeps.
const mostEpochs = 4096

// Epoch returns the engine epoch of a query: it changes when a definition, a version or a setting does on which the
// query may depend.
func (s *Snapshot) Epoch(c Calls) string {
	key := fmt.Sprint(c.Functions, c.Implied, c.Relations, c.Path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch, ok := s.epochs[key]; ok {
		return epoch
	}
	h := sha256.New()
	h.Write(s.base[:])
	for _, f := range s.closure(c) {
		fmt.Fprintf(h, "%s\x00%s\x00%s\x00", f.Schema, f.Name, f.arguments)
		h.Write(f.own[:])
	}
	if len(s.epochs) >= mostEpochs {
		clear(s.epochs)
	}
	epoch := hex.EncodeToString(h.Sum(nil))
	s.epochs[key] = epoch
	return epoch
}

// closure returns the functions that a query may call, directly or through others, in the order of their names. The
// caller holds s.mu.
func (s *Snapshot) closure(c Calls) []*function {
	w := walk{s: s, found: map[*function]bool{}, seen: map[visit]bool{}}
	for _, name := range c.Functions {
		schema, bare, _ := ident.ParseFunction(name)
		w.named(ident.Table{Schema: schema, Name: bare}, c.Path)
	}
	for _, f := range c.Implied {
		w.named(f, c.Path)
	}
	for _, t := range c.Relations {
		w.relation(t, c.Path)
	}
	out := make([]*function, 0, len(w.found))
	for f := range w.found {
		out = append(out, f)
	}
	slices.SortFunc(out, func(x, y *function) int {
		if c := ident.Compare(x.Table, y.Table); c != 0 {
			return c
		}
		return strings.Compare(x.arguments, y.arguments)
	})
	return out
}

// walk follows calls.
type walk struct {
	s     *Snapshot
	found map[*function]bool
	seen  map[visit]bool
}

// visit is a function or a relation that is reached under a path. Under another path it may call other functions.
type visit struct {
	function *function
	relation ident.Table
	path     string
}

// first reports whether a function or a relation is reached under a path for the first time.
func (w *walk) first(f *function, t ident.Table, path []string) bool {
	v := visit{f, t, ident.List(path)}
	if w.seen[v] {
		return false
	}
	w.seen[v] = true
	return true
}

// named adds the functions to which a name may refer under a path.
func (w *walk) named(t ident.Table, path []string) {
	for _, f := range w.s.byName[t.Name] {
		if visible(f.Schema, t.Schema, path) {
			w.add(f, path)
		}
	}
}

// visible reports whether a name with a schema, or without one, may refer to an object of a schema under a path.
func visible(schema, named string, path []string) bool {
	if named != "" {
		return schema == named
	}
	return schema == "pg_catalog" || slices.Contains(path, schema)
}

func (w *walk) relation(t ident.Table, path []string) {
	schemas := []string{t.Schema}
	if t.Schema == "" {
		schemas = path
	}
	for _, schema := range schemas {
		t.Schema = schema
		if !w.first(nil, t, path) {
			continue
		}
		v := w.s.views[t]
		for _, f := range v.calls {
			w.add(f, path)
		}
		for _, r := range v.reads {
			w.relation(r, path)
		}
	}
}

// add adds a function that is called under a path, and what it calls.
func (w *walk) add(f *function, path []string) {
	if f.path != nil { // it applies to what the function calls, too
		path = f.path
	}
	if !w.first(f, ident.Table{}, path) {
		return
	}
	w.found[f] = true
	for _, g := range f.calls {
		w.add(g, path)
	}
	mentions := w.s.mentions(f)
	for _, overloads := range w.s.byName {
		for _, g := range overloads {
			if (visible(g.Schema, "", path) || strings.Contains(f.body, g.Schema)) && mentions(g.Table) {
				w.add(g, path)
			}
		}
	}
	for t := range w.s.views {
		if f.names != nil && f.names.Relation(t) && (visible(t.Schema, "", path) || strings.Contains(f.body, t.Schema)) {
			w.relation(t, path)
		}
	}
}

// mentions returns whether the body of a function names another function. In a body that cannot be parsed, every word
// counts.
func (s *Snapshot) mentions(f *function) func(ident.Table) bool {
	if !f.read && f.body != "" && f.language != "c" && f.language != "internal" {
		f.names, _ = body.NamesOf(s.limits, f.language, f.body, func(string, string) (risky, byName bool) { return true, false })
	}
	f.read = true
	switch {
	case f.names != nil:
		return f.names.Function
	case f.language == "c" || f.language == "internal":
		return func(ident.Table) bool { return false }
	}
	text := strings.ToLower(f.body)
	return func(t ident.Table) bool { return ident.ContainsWord(text, strings.ToLower(t.Name)) }
}

// Changed returns the names of the functions that are not the same as in an earlier Snapshot, sorted.
func (s *Snapshot) Changed(before *Snapshot) []string {
	names := map[string]bool{}
	compare := func(x, y *Snapshot) {
		for name, overloads := range x.byName {
			for _, f := range overloads {
				if !slices.ContainsFunc(y.byName[name], func(g *function) bool {
					return g.Schema == f.Schema && g.arguments == f.arguments && g.own == f.own
				}) {
					names[f.String()] = true
				}
			}
		}
	}
	compare(s, before)
	compare(before, s)
	return sorted(names)
}
