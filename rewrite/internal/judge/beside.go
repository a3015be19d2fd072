package judge

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/builtin"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// What the trials of a statement read besides tables is the same for all copies, and neither counters nor locks show
// it: files, other servers, large objects, settings, what a text names that is executed. So it is judged beforehand by
// what the functions, operators, types and views of the statement can reach in the shadow database. A function of an
// extension is a part of the engine, unless the extension reads elsewhere; so is one in claims.safe_functions.

// contents are the uses of functions and relations of the shadow database, which are read once. It is safe for
// concurrent use.
type contents struct {
	mu  sync.Mutex
	all map[any]*uses // by *catalog.Function or *catalog.Relation
}

func (c *contents) of(key any, read func() *uses) *uses {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.all[key]
	if u == nil {
		u = read()
		c.all[key] = u
	}
	return u
}

// Beside returns what the trials of a statement may read besides the copies, without being seen, as sorted texts of the
// form "function f reads ...". root is its tree, and session the settings that the client's session has set. It is
// called after Verdict, and returns nothing if the catalog of the shadow database is not known.
func (s *Statement) Beside(root protoreflect.Message, session map[string]string) []string {
	shadow := s.rules.options.Shadow
	if shadow == nil {
		return nil
	}
	b := &besideSearch{rules: s.rules, shadow: shadow, seen: map[visited]bool{}, found: map[string]bool{}, settings: map[string]map[string]bool{}, sets: map[string]bool{}}
	path := s.names.replay
	u := usesOf(root)
	u.relations = nil
	u.calls = slices.DeleteFunc(u.calls, func(call Table) bool { return b.copied(call, path) })
	b.use("the statement", u, path)
	for t := range s.Protected {
		for _, schema := range s.rules.options.Neighbours {
			b.relation("the statement", Table{Schema: schema, Name: t.Name}, path)
		}
	}
	for t := range s.Public {
		b.relation("the statement", t, path)
	}
	for _, cast := range shadow.Catalog.ImplicitCasts {
		b.call("an implicit cast", cast, path)
	}
	b.judgeSettings(session)
	return slices.Sorted(maps.Keys(b.found))
}

// copied follows the neighbours' copies of a function, to which calls of it go, and reports whether each neighbour has
// one.
func (b *besideSearch) copied(call Table, path resolve.Path) bool {
	schemas := map[string]bool{}
	for _, g := range b.shadow.Functions[call.Name] {
		if slices.Contains(b.rules.options.Neighbours, g.Schema) {
			schemas[g.Schema] = true
			b.function(g, path)
		}
	}
	return len(schemas) > 0 && len(schemas) == len(b.rules.options.Neighbours)
}

// besideSearch follows what a statement uses.
type besideSearch struct {
	rules    *Rules
	shadow   *catalog.Index
	seen     map[visited]bool
	found    map[string]bool
	settings map[string]map[string]bool // that are read, with who reads them
	sets     map[string]bool            // settings that are set
}

// visited is a function or a relation, under the path with which the names in it are looked up.
type visited struct {
	object any
	path   string
}

func (b *besideSearch) first(object any, path resolve.Path) bool {
	v := visited{object, ident.List(path.Schemas)}
	if path.Uncertain {
		v.path = "?"
	}
	if b.seen[v] {
		return false
	}
	b.seen[v] = true
	return true
}

func (b *besideSearch) find(who, what string) { b.found[who+" "+what] = true }

// use follows what an object uses; who describes it.
func (b *besideSearch) use(who string, u *uses, path resolve.Path) {
	for _, what := range u.beside {
		b.find(who, what)
	}
	for _, name := range u.settings {
		if b.settings[name] == nil {
			b.settings[name] = map[string]bool{}
		}
		b.settings[name][who] = true
	}
	for _, name := range u.sets {
		b.sets[name] = true
	}
	for _, t := range u.calls {
		b.call(who, t, path)
	}
	for _, t := range u.relations {
		b.named(who, t, path)
	}
	for _, t := range u.types {
		for _, of := range b.shadow.Types[t.Name] {
			if visible(of.Schema, t, path) {
				b.calls(who, of.Calls, path)
			}
		}
	}
	for _, t := range u.operators {
		for _, o := range b.shadow.Operators[t.Name] {
			if visible(o.Schema, t, path) {
				b.call(who, o.Function, path)
			}
		}
	}
	for _, name := range u.attributes {
		for _, g := range b.shadow.Functions[name] {
			if g.OfOne && g.OfRow && visible(g.Schema, Table{Name: name}, path) {
				b.function(g, path)
			}
		}
	}
}

// visible reports whether a name, with a schema or without one, may refer to an object of a schema.
func visible(schema string, named Table, path resolve.Path) bool {
	if named.Schema != "" {
		return schema == named.Schema
	}
	return schema == "pg_catalog" || path.Uncertain || slices.Contains(path.Schemas, schema)
}

func (b *besideSearch) calls(who string, all []Table, path resolve.Path) {
	for _, t := range all {
		b.call(who, t, path)
	}
}

// call follows a call of the functions to which a name may refer.
func (b *besideSearch) call(who string, t Table, path resolve.Path) {
	for _, g := range b.shadow.Functions[t.Name] {
		if visible(g.Schema, t, path) {
			b.function(g, path)
		}
	}
	if t.Schema != "" && t.Schema != "pg_catalog" || b.declared("pg_catalog", t.Name) {
		return
	}
	if _, unlisted := b.shadow.Unlisted[t.Name]; !unlisted && builtin.Of(t.Name) == builtin.Unlisted {
		return
	}
	if what := builtin.Beside(t.Name); what != "" {
		b.find(who, "reads "+what+" ("+t.Name+")")
	}
}

// declared reports whether the configuration declares a function safe by its name.
func (b *besideSearch) declared(schema, name string) bool {
	return b.rules.functions.allowed[[2]string{"", name}] || b.rules.functions.allowed[[2]string{schema, name}]
}

// function follows what a function does.
func (b *besideSearch) function(f *catalog.Function, path resolve.Path) {
	if b.declared(f.Schema, f.Name) {
		return
	}
	who := "function " + Table{Schema: f.Schema, Name: f.Name}.String()
	if f.Extension != "" {
		if what := elsewhere(f); what != "" {
			b.find(who, what)
		}
		return
	}
	if value, ok := f.Settings["search_path"]; ok {
		schemas, valid := ident.ParseList(value)
		path = resolve.Path{Schemas: schemas, Uncertain: !valid || slices.Contains(schemas, resolve.UserSchema)}
	} else if f.Language == "sql" && body.IsAtomic(f.Body) { // in which the server prints names with their schemas
		path = resolve.Path{}
	}
	if b.first(f, path) {
		b.calls(who, f.Calls, path)
		b.use(who, b.rules.contents.of(f, func() *uses { return usesOfFunction(f, b.rules.options.Limits) }), path)
	}
}

// named follows a relation that the body of a function, or a view, names.
func (b *besideSearch) named(who string, t Table, path resolve.Path) {
	if t.Schema == "" || t.Schema == "pg_catalog" {
		if slices.Contains(b.shadow.Catalog.System, t.Name) && !(t.Schema == "" && path.Has("pg_catalog") && path.Schemas[0] != "pg_catalog") {
			if !builtin.HoldsDefinitions(t.Name) {
				b.find(who, "reads the system catalog "+t.Name)
			}
			return
		}
	}
	switch {
	case t.Schema == "information_schema":
		b.find(who, "reads the system catalog "+t.String())
	case t.Schema != "":
		b.relation(who, t, path)
	case path.Uncertain:
		for _, r := range b.shadow.Named[t.Name] {
			b.relation(who, r.Table, path)
		}
	default:
		for _, schema := range path.Schemas {
			if found := (Table{Schema: schema, Name: t.Name}); b.shadow.Relations[found] != nil {
				b.relation(who, found, path)
				return
			}
		}
	}
}

// relation follows a relation and what a query on it reads. What is read of tables is counted.
func (b *besideSearch) relation(who string, t Table, path resolve.Path) {
	for _, t := range ident.Sorted(b.shadow.Closure(t)) {
		r := b.shadow.Relations[t]
		if r == nil || !b.first(r, resolve.Path{}) {
			continue
		}
		known := slices.Contains(b.rules.options.Neighbours, t.Schema) || b.rules.names.Kinds[t] == resolve.KindPublic
		switch {
		case r.Kind == catalog.KindForeign && !known:
			b.find(who, "reads the foreign table "+t.String())
		case r.Kind == catalog.KindSequence && !known:
			b.find(who, "reads the sequence "+t.String())
		case r.Kind == catalog.KindView:
			b.use("view "+t.String(), b.rules.contents.of(r, func() *uses { return usesOfView(r, b.rules.options.Limits) }), resolve.Path{})
		}
		b.calls("relation "+t.String(), r.Calls, path)
	}
}

// settled are settings without a dot that hold nothing but the state of a session or the kind of a server.
var settled = []string{
	"search_path", "role", "session_authorization", "is_superuser", "server_version", "server_version_num", "server_encoding", "client_encoding",
	"transaction_isolation", "transaction_read_only", "default_transaction_isolation", "default_transaction_read_only", "transaction_deferrable",
	"standard_conforming_strings", "integer_datetimes", "max_identifier_length", "block_size", "in_hot_standby", "client_min_messages", "work_mem",
	"statement_timeout", "lock_timeout", "lc_collate", "lc_ctype", "lc_messages", "jit", "max_parallel_workers_per_gather",
}

// judgeSettings finds the settings that are read and hold no claim, are not set by the client's session, which is the
// same for replays, or by what reads them, and are no property of the session.
func (b *besideSearch) judgeSettings(session map[string]string) {
	for name, readers := range b.settings {
		_, set := session[name]
		custom := strings.Contains(name, ".")
		if set || b.sets[name] || slices.Contains(b.rules.options.Settings, name) || !custom && (AffectsResult(name) || slices.Contains(settled, name)) {
			continue
		}
		for who := range readers {
			b.find(who, "reads the setting "+name)
		}
	}
}
