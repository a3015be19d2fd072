package source

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Model describes the relations to copy, from the source's catalog. Expressions are as the server prints them with an
// empty search_path: every name outside pg_catalog is qualified. The types below list their fields in the order of the
// queries that read them.
type Model struct {
	Database   string
	Relations  []*Relation // parents before children; views last
	Sequences  []Sequence
	Functions  []Function
	Statistics []statistics
	Types      []uint32 // OIDs of the types outside pg_catalog that columns, views and functions use
	Collations []uint32 // OIDs of those that columns, indexes, views and constraints use
	Keys       []foreignKey
}

// Relation is a table, partition, view or materialised view.
type Relation struct {
	OID uint32
	ident.Table
	Kind        catalog.RelationKind // a table, partitioned table, view or materialised view
	IsPartition bool
	PartKey     string // PARTITION BY, "" = none
	PartBound   string
	Options     []string // storage parameters, name=value
	View        string   // the query of a view, without semicolon
	Rows        int64    // the planner's estimate
	Estimated   bool     // otherwise the table was never analysed, and its rows are not known
	Bytes       int64    // on disk, with indexes
	Parents     []uint32
	Rehashed    bool   // partitioned by a hash of values that another database may hash differently, such as an enum's
	Storage     string // access method, and whether unlogged

	Copy    string       `db:"-"` // name in the copies; see Discovery.names
	Columns []Column     `db:"-"`
	Checks  []constraint `db:"-"`
	Indexes []index      `db:"-"`
}

// Stores reports whether the relation itself holds rows.
func (r *Relation) Stores() bool { return r.Kind == catalog.KindTable }

// IsTable reports whether it is a table, partitioned or not.
func (r *Relation) IsTable() bool {
	return r.Kind == catalog.KindTable || r.Kind == catalog.KindPartitioned
}

// Column is one attribute in the order of attnum, including dropped ones.
type Column struct {
	Name       string
	TypeOID    uint32
	Type       string // format_type
	Dropped    bool
	NotNull    bool
	Expression string // default or generation expression
	Generated  bool
	Virtual    bool   // computed when read; since PostgreSQL 18
	Identity   string // "a" always, "d" by default, "" none
	Collation  string // quoted and qualified; "" = the type's
	Target     int    // statistics target, -1 = default
	Storage    string // "" = the type's
	Options    []string
	Drawn      bool   `db:"-"` // every copy draws its values from the default: see Discovery.drawn
	Base       uint32 // the type under a domain, and under domains over domains; text for citext; else TypeOID
	Element    uint32 // Base of the elements of an array; 0 = it is none
}

// constraint is a CHECK; local: declared at the table, not only inherited.
type constraint struct {
	Name, Definition string
	Local            bool
	Expression       string
}

// index is an index, or the constraint that it enforces.
type index struct {
	OID        uint32
	Name       string
	Quoted     string // name as in definition
	Definition string // CREATE INDEX, as the server prints it
	Constraint string // pg_get_constraintdef of the constraint that owns it; "" = none
	Parent     uint32 // OID of the partitioned index that it belongs to; 0 = none
	Clustered  bool
	Identity   bool // REPLICA IDENTITY
	Partial    bool
	Unique     []string // columns that must not all be equal in two rows, for an exclusion constraint those compared with =; nil = none, or an expression
}

// statistics is an extended statistics object.
type statistics struct {
	ident.Table        // its name
	Quoted      string // qualified name as in definition
	Definition  string // CREATE STATISTICS
	Target      int    // -1 = default
	Copy        string `db:"-"` // name in the copies
}

// Sequence is a sequence used by defaults or identity columns of the tables.
type Sequence struct {
	ident.Table
	Type                               string
	Start, Increment, Low, High, Cache int64
	Cycle                              bool
	Owner                              uint32 // relation and column that own it; 0 = none
	Column                             string
	Identity                           bool

	Copy   string `db:"-"` // name in the copies
	Last   int64  `db:"-"`
	Called bool   `db:"-"`
}

// Function is a SQL function that names a copied relation, or has the same name as such a function.
type Function struct {
	OID uint32
	ident.Table
	Definition string
	Body       string // "" = BEGIN ATOMIC, whose definition has resolved names
	Arguments  int
	Path       string // its search_path setting, "" = none
	Why        byte   // 'r' takes or returns rows of a copied relation, 't' may read one, 'n' same name only
	Copy       string `db:"-"` // name in the copies
}

// foreignKey is a foreign key between copied tables.
type foreignKey struct {
	Name          string
	Child, Parent uint32
	Definition    string
	Columns, On   []string
	Period        bool // the last column is a range during which the reference holds (PostgreSQL 18)
}

// ByOID returns the relation with an OID, or nil.
func (m *Model) ByOID(oid uint32) *Relation {
	return m.find(func(r *Relation) bool { return r.OID == oid })
}

func (m *Model) find(is func(*Relation) bool) *Relation {
	if i := slices.IndexFunc(m.Relations, is); i >= 0 {
		return m.Relations[i]
	}
	return nil
}

// Bytes returns the size of all relations at the source.
func (m *Model) Bytes() (total int64) {
	for _, r := range m.Relations {
		total += r.Bytes
	}
	return total
}

// Named returns the relation with a name at the source, or nil.
func (m *Model) Named(t ident.Table) *Relation {
	return m.find(func(r *Relation) bool { return r.Table == t })
}

// Tables returns the relations that are tables, parents before children.
func (m *Model) Tables() []*Relation {
	return slices.DeleteFunc(slices.Clone(m.Relations), func(r *Relation) bool { return !r.IsTable() })
}

// Top returns the topmost table above r in partitioning or inheritance.
func (m *Model) Top(r *Relation) *Relation {
	for len(r.Parents) > 0 {
		r = m.ByOID(r.Parents[0])
	}
	return r
}

// Within reports whether r is top or below it in partitioning or inheritance.
func (m *Model) Within(r, top *Relation) bool {
	if r == top {
		return true
	}
	for _, parent := range r.Parents {
		if p := m.ByOID(parent); p != nil && m.Within(p, top) {
			return true
		}
	}
	return false
}

// InheritsIdentity reports whether a column of a partition is an identity column of its parent.
func (m *Model) InheritsIdentity(r *Relation, name string) bool {
	if !r.IsPartition {
		return false
	}
	c := m.ByOID(r.Parents[0]).Column(name)
	return c != nil && c.Identity != ""
}

// Entrance returns the table through which rows of r are loaded: r, or the topmost table above it that may route them
// to another partition than at the source.
func (m *Model) Entrance(r *Relation) *Relation {
	into := r
	for r.IsPartition {
		if r = m.ByOID(r.Parents[0]); r.Rehashed {
			into = r
		}
	}
	return into
}

// Live returns the columns that are not dropped.
func (r *Relation) Live() []Column {
	return slices.DeleteFunc(slices.Clone(r.Columns), func(c Column) bool { return c.Dropped })
}

// Names returns the names of the columns that are not dropped.
func (r *Relation) Names() []string { return names(r.Live()) }

// Stored returns the names of the columns that are copied: all but generated ones and those that every copy draws.
func (r *Relation) Stored() []string {
	return names(slices.DeleteFunc(r.Live(), func(c Column) bool { return c.Generated || c.Drawn }))
}

func names(columns []Column) []string {
	var out []string
	for _, c := range columns {
		out = append(out, c.Name)
	}
	return out
}

// Column returns the column with a name, or nil.
func (r *Relation) Column(name string) *Column {
	for i := range r.Columns {
		if r.Columns[i].Name == name && !r.Columns[i].Dropped {
			return &r.Columns[i]
		}
	}
	return nil
}
