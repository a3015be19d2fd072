package rewrite

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

//go:embed system_catalogs.txt
var systemCatalogs string

// relationKind is the meaning of a relation's name for a replay.
type relationKind uint8

const (
	kindUnknown   relationKind = iota // not listed
	kindProtected                     // has a copy in every neighbour schema
	kindPublic                        // read in place
	kindOther                         // exists, but is neither protected nor public
	kindSystem                        // pg_catalog, information_schema, pg_toast
	kindTemp                          // pg_temp
)

// names holds every listed relation, and, with a catalog, every relation. It is read-only after construction.
type names struct {
	source    *catalog.Index    // of the client's database; nil = only listed relations are known
	bases     map[Table][]Table // relations over protected tables, according to the catalog: these tables
	refused   map[Table]fault   // relations that are listed, or depend on listed ones, but cannot be replayed
	kinds     map[Table]relationKind
	schemas   map[string]bool // schemas with a listed relation: assumed to be listed completely
	protected map[string]bool // unqualified names of protected tables
	catalogs  map[string]bool // relations of pg_catalog

	readers map[*catalog.Function]bool // functions of either catalog that read a protected table
	copies  map[Table]functionCopy     // of functions of the source, by schema and name
}

// newNames indexes the listed relations and, from the catalogs, their readers.
func newNames(o Options, f *functions) *names {
	n := listedNames(o)
	n.source = catalog.NewIndex(o.Source)
	n.dependents(o, f, newJudge(o, n, f))
	return n
}

// listedNames indexes the relations listed in the options.
func listedNames(o Options) *names {
	n := &names{
		refused: map[Table]fault{},
		kinds:   map[Table]relationKind{}, schemas: map[string]bool{},
		protected: map[string]bool{}, catalogs: map[string]bool{},
		readers: map[*catalog.Function]bool{}, copies: map[Table]functionCopy{},
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

// qualified returns the kind of schema.name.
func (n *names) qualified(t Table) relationKind {
	switch {
	case resolve.IsTempSchema(t.Schema):
		return kindTemp
	case resolve.IsSystemSchema(t.Schema):
		return kindSystem
	}
	return n.kind(t)
}

// kind returns the kind of a relation of an ordinary schema. With a catalog, a relation that is not in it does not exist.
func (n *names) kind(t Table) relationKind {
	if n.source != nil {
		switch kind := n.kinds[t]; {
		case n.source.Relations[t] == nil:
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

// mentions reports whether text contains the name of a protected table as a word, in any case: it may become a name.
func (n *names) mentions(text string) bool {
	if n.protected[AnyTable] {
		return strings.ContainsFunc(text, func(r rune) bool { return r == '_' || r >= 0x80 || unicode.IsLetter(r) })
	}
	text = strings.ToLower(text)
	for name := range n.protected {
		if ident.ContainsWord(text, strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// rowType reports whether a type's name is that of the rows of a protected table, or of arrays of them: the table's name
// after one or more underscores.
func (n *names) rowType(name string) bool {
	for !n.protected[name] {
		if !strings.HasPrefix(name, "_") {
			return false
		}
		name = name[1:]
	}
	return true
}

// isStaticCatalog reports whether a system relation has the same content in every database with the same extensions, so
// that a query may join it with protected tables.
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

// unqualified resolves an unqualified name under a path: in the first schema that has it, pg_catalog first unless the path
// lists it (PostgreSQL manual, section 5.9.3). If it cannot be resolved, reason says why.
func (n *names) unqualified(name string, path resolve.Path) (t Table, kind relationKind, reason Reason) {
	if path.Uncertain {
		return Table{}, kindUnknown, ReasonSettingsUncertain
	}
	if n.catalogs[name] && !slices.Contains(path.Schemas, "pg_catalog") {
		return Table{Schema: "pg_catalog", Name: name}, kindSystem, ""
	}
	unknownBefore := false
	for _, s := range path.Schemas {
		t := Table{Schema: s, Name: name}
		switch {
		case s == "pg_catalog" && n.catalogs[name]:
			return t, kindSystem, ""
		case s == "information_schema": // its views are not in the catalogs
			unknownBefore = true
		case resolve.IsSystemSchema(s) || resolve.IsTempSchema(s): // the name of a protected table does not start with pg_
			continue
		case n.kind(t) != kindUnknown && unknownBefore:
			return Table{}, kindUnknown, ReasonAmbiguousName
		case n.kind(t) != kindUnknown:
			return t, n.kind(t), ""
		case n.source == nil && s != path.User && !n.schemas[s]:
			unknownBefore = true
		}
	}
	return Table{}, kindUnknown, ReasonUnknownTable
}
