package resolve

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

//go:embed system_catalogs.txt
var systemCatalogs string

// AnyTable as a listed table's name stands for every relation of its schema.
const AnyTable = "*"

// Kind is the meaning of a relation's name for a replay.
type Kind uint8

// The kinds of relations.
const (
	KindUnknown   Kind = iota // not listed
	KindProtected             // has a copy in every neighbour schema
	KindPublic                // read in place
	KindOther                 // exists, but is neither protected nor public
	KindSystem                // pg_catalog, information_schema, pg_toast
	KindTemp                  // pg_temp
)

// Doubt is why an unqualified name cannot be resolved.
type Doubt uint8

// The doubts.
const (
	DoubtNone      Doubt = iota
	DoubtSettings        // the path is not known
	DoubtAmbiguous       // a schema earlier in the path may have it
	DoubtUnlisted        // no schema of the path has it
)

// Relations holds every listed relation, and, with a catalog, every relation.
type Relations struct {
	Source    *catalog.Index // of the client's database; nil = only listed relations are known
	Kinds     map[ident.Table]Kind
	Protected map[string]bool // unqualified names of protected tables
	schemas   map[string]bool // schemas with a listed relation: assumed to be listed completely
	catalogs  map[string]bool // relations of pg_catalog
}

// NewRelations indexes listed relations.
func NewRelations(source *catalog.Index, protected, public, others []ident.Table) *Relations {
	n := &Relations{
		Source: source, Kinds: map[ident.Table]Kind{}, Protected: map[string]bool{}, schemas: map[string]bool{}, catalogs: map[string]bool{},
	}
	add := func(tables []ident.Table, kind Kind) {
		for _, t := range tables {
			n.Kinds[t] = kind
			n.schemas[t.Schema] = true
		}
	}
	add(others, KindOther)
	add(public, KindPublic)
	add(protected, KindProtected)
	for _, t := range protected {
		n.Protected[t.Name] = true
	}
	for line := range strings.Lines(systemCatalogs) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			n.catalogs[line] = true
		}
	}
	if source != nil { // the list is that of one version
		for _, name := range source.Catalog.System {
			n.catalogs[name] = true
		}
	}
	return n
}

// Qualified returns the kind of schema.name.
func (n *Relations) Qualified(t ident.Table) Kind {
	switch {
	case IsTempSchema(t.Schema):
		return KindTemp
	case IsSystemSchema(t.Schema):
		return KindSystem
	}
	return n.kind(t)
}

// kind returns the kind of a relation of an ordinary schema. With a catalog, a relation that is not in it does not
// exist.
func (n *Relations) kind(t ident.Table) Kind {
	if n.Source != nil {
		switch kind := n.Kinds[t]; {
		case n.Source.Relations[t] == nil:
			return KindUnknown
		case kind != KindUnknown:
			return kind
		}
		return KindOther
	}
	if kind := n.Kinds[t]; kind != KindUnknown {
		return kind
	}
	return n.Kinds[ident.Table{Schema: t.Schema, Name: AnyTable}]
}

// Mentions reports whether text contains the name of a protected table as a word, in any case: it may become a name.
func (n *Relations) Mentions(text string) bool {
	if n.Protected[AnyTable] {
		return strings.ContainsFunc(text, func(r rune) bool { return r == '_' || r >= 0x80 || unicode.IsLetter(r) })
	}
	text = strings.ToLower(text)
	for name := range n.Protected {
		if ident.ContainsWord(text, strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// RowType reports whether a type's name is that of the rows of a protected table, or of arrays of them: the table's
// name after one or more underscores.
func (n *Relations) RowType(name string) bool {
	for !n.Protected[name] {
		if !strings.HasPrefix(name, "_") {
			return false
		}
		name = name[1:]
	}
	return true
}

// IsStaticCatalog reports whether a system relation has the same content in every database with the same extensions, so
// that a query may join it with protected tables.
func IsStaticCatalog(t ident.Table) bool {
	if t.Schema != "pg_catalog" {
		return false
	}
	switch t.Name {
	case "pg_am", "pg_cast", "pg_collation", "pg_language", "pg_operator", "pg_range", "pg_timezone_abbrevs", "pg_timezone_names":
		return true
	}
	return false
}

// Unqualified resolves an unqualified name under a path: in the first schema that has it, pg_catalog first unless the
// path lists it (PostgreSQL manual, section 5.9.3). If it cannot be resolved, doubt says why.
func (n *Relations) Unqualified(name string, path Path) (t ident.Table, kind Kind, doubt Doubt) {
	if path.Uncertain {
		return ident.Table{}, KindUnknown, DoubtSettings
	}
	if n.catalogs[name] && !slices.Contains(path.Schemas, "pg_catalog") {
		return ident.Table{Schema: "pg_catalog", Name: name}, KindSystem, DoubtNone
	}
	unknownBefore := false
	for _, s := range path.Schemas {
		t := ident.Table{Schema: s, Name: name}
		switch {
		case s == "pg_catalog" && n.catalogs[name]:
			return t, KindSystem, DoubtNone
		case s == "information_schema": // its views are not in the catalogs
			unknownBefore = true
		case IsSystemSchema(s) || IsTempSchema(s): // the name of a protected table does not start with pg_
			continue
		case n.kind(t) != KindUnknown && unknownBefore:
			return ident.Table{}, KindUnknown, DoubtAmbiguous
		case n.kind(t) != KindUnknown:
			return t, n.kind(t), DoubtNone
		case n.Source == nil && s != path.User && !n.schemas[s]:
			unknownBefore = true
		}
	}
	return ident.Table{}, KindUnknown, DoubtUnlisted
}
