package rewrite

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"

	"github.com/dpwatch/dpwatch/internal/capture"
)

//go:embed system_catalogs.txt
var systemCatalogs string

// relationKind is what a name means for a replay.
type relationKind uint8

const (
	kindUnknown   relationKind = iota // listed nowhere
	kindProtected                     // copied into every neighbour schema
	kindPublic                        // read in place
	kindOther                         // exists, but is neither
	kindSystem                        // pg_catalog, information_schema, pg_toast
	kindTemp                          // pg_temp
)

// names knows every listed relation, and, with a catalog, every relation. It is read-only once made.
type names struct {
	source    *catalogIndex     // of the database that clients ask; nil = only what is listed is known
	bases     map[Table][]Table // relations over protected tables, by the catalog: the tables
	refused   map[Table]fault   // relations that are listed, or depend on listed ones, and cannot be replayed
	kinds     map[Table]relationKind
	schemas   map[string]bool // schemas that a listed relation lies in: taken as fully listed
	protected map[string]bool // bare names of protected tables
	catalogs  map[string]bool // relations of pg_catalog

	readers map[*Function]bool     // functions of either catalog that read a protected table
	copies  map[Table]functionCopy // those of the source, by schema and name
}

// newNames knows the listed relations and, by the catalogs, what reads them.
func newNames(o Options, f *functions) *names {
	n := listedNames(o)
	n.source = newCatalogIndex(o.Source)
	n.dependents(o, f, newJudge(o, n, f))
	return n
}

// listedNames knows what the options list.
func listedNames(o Options) *names {
	n := &names{
		refused: map[Table]fault{},
		kinds:   map[Table]relationKind{}, schemas: map[string]bool{},
		protected: map[string]bool{}, catalogs: map[string]bool{},
		readers: map[*Function]bool{}, copies: map[Table]functionCopy{},
	}
	add := func(tables []Table, kind relationKind) {
		for _, t := range tables {
			n.kinds[t] = kind
			n.schemas[t.Schema] = true
		}
	}
	add(o.Others, kindOther)
	add(o.Public, kindPublic)
	add(o.Protected, kindProtected)
	for _, t := range o.Protected {
		n.protected[t.Name] = true
	}
	for line := range strings.Lines(systemCatalogs) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			n.catalogs[line] = true
		}
	}
	return n
}

// qualified says what schema.name means.
func (n *names) qualified(t Table) relationKind {
	switch {
	case isTempSchema(t.Schema):
		return kindTemp
	case isSystemSchema(t.Schema):
		return kindSystem
	}
	return n.kind(t)
}

// kind looks a relation of an ordinary schema up. With a catalog, what it does not hold does not exist.
func (n *names) kind(t Table) relationKind {
	if n.source != nil {
		switch kind := n.kinds[t]; {
		case n.source.relations[t] == nil:
			return kindUnknown
		case kind != kindUnknown:
			return kind
		}
		return kindOther
	}
	if kind := n.kinds[t]; kind != kindUnknown {
		return kind
	}
	return n.kinds[Table{Schema: t.Schema, Name: AnyTable}]
}

// mentions reports whether text holds the name of a protected table as a word, in any case: it may become a name.
func (n *names) mentions(text string) bool {
	if n.protected[AnyTable] {
		return strings.ContainsFunc(text, func(r rune) bool { return r == '_' || r >= 0x80 || unicode.IsLetter(r) })
	}
	text = strings.ToLower(text)
	for name := range n.protected {
		if containsWord(text, strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// rowType reports whether a type's name is that of the rows of a protected table, or of arrays of them: the table's behind
// one underscore or more.
func (n *names) rowType(name string) bool {
	for !n.protected[name] {
		if !strings.HasPrefix(name, "_") {
			return false
		}
		name = name[1:]
	}
	return true
}

func containsWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(word)
		if (start == 0 || !isNameByte(text[start-1])) && (end == len(text) || !isNameByte(text[end])) {
			return true
		}
		from = start + 1
	}
}

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isTempSchema(s string) bool { return s == "pg_temp" || strings.HasPrefix(s, "pg_temp_") }

func isSystemSchema(s string) bool {
	return s == "information_schema" || strings.HasPrefix(s, "pg_") && !isTempSchema(s)
}

// isStaticCatalog reports whether a system relation says the same in every database that has the same extensions,
// so that a query may join it with protected tables.
func isStaticCatalog(t Table) bool {
	if t.Schema != "pg_catalog" {
		return false
	}
	switch t.Name {
	case "pg_am", "pg_cast", "pg_collation", "pg_language", "pg_operator", "pg_range", "pg_timezone_abbrevs", "pg_timezone_names":
		return true
	}
	return false
}

// searchPath is the path in force for one query.
type searchPath struct {
	schemas   []string // "$user" replaced
	user      string   // the schema that stands for "$user"; "" = not in the path
	role      string   // who asks: the session's user, or the role that it took
	assumed   bool     // neither the session nor a catalog gave it
	uncertain bool     // the proxy could not follow the settings, or they cannot be read
}

// pathOf returns the path that q ran under: the session's own, else byDefault.
func pathOf(q capture.Query, byDefault []string) searchPath {
	path := byDefault
	value, ok := q.Settings["search_path"]
	p := searchPath{uncertain: q.SettingsUncertain, assumed: !ok}
	if ok {
		var valid bool
		if path, valid = parseSearchPath(value); !valid {
			p.uncertain = true
		}
	}
	user := q.User
	for _, setting := range []string{"session_authorization", "role"} {
		if role := q.Settings[setting]; role != "" && role != "none" {
			user = role
		}
	}
	p.role = user
	for _, s := range path {
		if s == userSchema {
			if s = user; s == "" {
				continue
			}
			p.user = s
		}
		p.schemas = append(p.schemas, s)
	}
	return p
}

// seen drops the schemas that the server ignores: those that do not exist, or that the role may not use. They may be there, and
// for the replays' role, in the database of the replays.
func (n *names) seen(p searchPath) searchPath {
	if n.source == nil {
		return p
	}
	var kept []string
	for _, s := range p.schemas {
		if isSystemSchema(s) || isTempSchema(s) || n.source.schemas[s] && !n.source.denied[Denial{p.role, s}] {
			kept = append(kept, s)
		}
	}
	p.schemas = kept
	return p
}

// has reports whether the path is known and holds a schema.
func (p searchPath) has(schema string) bool {
	return !p.uncertain && slices.Contains(p.schemas, schema)
}

// before reports whether a schema of the path is earlier than another.
func (p searchPath) before(a, b string) bool {
	return slices.Index(p.schemas, a) < slices.Index(p.schemas, b)
}

// unqualified says what a bare name means under a path: the first schema that holds it, pg_catalog first unless the
// path lists it (manual, 5.9.3). When that cannot be known, reason says why.
func (n *names) unqualified(name string, path searchPath) (t Table, kind relationKind, reason Reason) {
	if path.uncertain {
		return Table{}, kindUnknown, ReasonSettingsUncertain
	}
	if n.catalogs[name] && !slices.Contains(path.schemas, "pg_catalog") {
		return Table{Schema: "pg_catalog", Name: name}, kindSystem, ""
	}
	unknownBefore := false
	for _, s := range path.schemas {
		t := Table{Schema: s, Name: name}
		switch {
		case s == "pg_catalog" && n.catalogs[name]:
			return t, kindSystem, ""
		case s == "information_schema": // its views are in no catalog here
			unknownBefore = true
		case isSystemSchema(s) || isTempSchema(s): // a protected table's name does not start with pg_
			continue
		case n.kind(t) != kindUnknown && unknownBefore:
			return Table{}, kindUnknown, ReasonAmbiguousName
		case n.kind(t) != kindUnknown:
			return t, n.kind(t), ""
		case n.source == nil && s != path.user && !n.schemas[s]:
			unknownBefore = true
		}
	}
	return Table{}, kindUnknown, ReasonUnknownTable
}
