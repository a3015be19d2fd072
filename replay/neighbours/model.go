package neighbours

// model describes the relations to copy, from the source's catalog. Expressions are as the server prints them with an empty
// search_path: every name outside pg_catalog is qualified.
type model struct {
	database   string
	relations  []*relation // parents before children; views last
	sequences  []sequence
	functions  []function
	statistics []statistics
	types      []uint32 // OIDs of the types outside pg_catalog that columns, views and functions use
	collations []uint32 // OIDs of those that columns, indexes, views and constraints use
	keys       []foreignKey
}

// relation is a table, partition, view or materialised view.
type relation struct {
	Table
	copy        string // name in the copies; see discovery.names
	oid         uint32
	kind        byte // pg_class.relkind: r, p, v, m
	parents     []uint32
	isPartition bool
	partKey     string // PARTITION BY, "" = none
	partBound   string
	rehashed    bool     // partitioned by a hash of values that another database may hash differently, such as an enum's
	options     []string // storage parameters, name=value
	storage     string   // access method, and whether unlogged
	columns     []column
	checks      []constraint
	indexes     []index
	view        string // the query of a view, without semicolon
	rows        int64  // the planner's estimate
	bytes       int64  // on disk, with indexes
}

// stores reports whether the relation itself holds rows.
func (r *relation) stores() bool { return r.kind == 'r' }

// isTable reports whether it is a table, partitioned or not.
func (r *relation) isTable() bool { return r.kind == 'r' || r.kind == 'p' }

// column is one attribute in the order of attnum, including dropped ones.
type column struct {
	name       string
	typ        string // format_type
	typeOID    uint32
	base       uint32 // the type under a domain, and under domains over domains; text for citext; else typeOID
	dropped    bool
	notNull    bool
	expression string // default or generation expression
	generated  bool
	virtual    bool   // computed when read; since PostgreSQL 18
	identity   string // "a" always, "d" by default, "" none
	collation  string // quoted and qualified; "" = the type's
	target     int    // statistics target, -1 = default
	storage    string // "" = the type's
	options    []string
}

// constraint is a CHECK; local: declared at the table, not only inherited.
type constraint struct {
	name, definition string
	local            bool
}

// index is an index, or the constraint that it enforces.
type index struct {
	name       string
	quoted     string // name as in definition
	definition string // CREATE INDEX, as the server prints it
	constraint string // pg_get_constraintdef of the constraint that owns it; "" = none
	parent     uint32 // OID of the partitioned index that it belongs to; 0 = none
	oid        uint32
	clustered  bool
	identity   bool     // REPLICA IDENTITY
	unique     []string // columns that must not all be equal in two rows, for an exclusion constraint those compared with =; nil = none, or an expression
}

// statistics is an extended statistics object.
type statistics struct {
	Table             // its name
	copy       string // name in the copies
	quoted     string // qualified name as in definition
	definition string // CREATE STATISTICS
	target     int    // -1 = default
}

// sequence is a sequence used by defaults or identity columns of the tables.
type sequence struct {
	Table
	copy                        string // name in the copies
	typ                         string
	start, increment, low, high int64
	cache, last                 int64
	cycle, called               bool
	owner                       uint32 // relation and column that own it; 0 = none
	column                      string
	identity                    bool
}

// function is a SQL function that names a copied relation, or has the same name as such a function.
type function struct {
	Table
	copy       string // name in the copies
	oid        uint32
	why        byte // 'r' takes or returns rows of a copied relation, 't' may read one, 'n' same name only
	definition string
	body       string // "" = BEGIN ATOMIC, whose definition has resolved names
	arguments  int
	path       string // its search_path setting, "" = none
}

// foreignKey is a foreign key between copied tables.
type foreignKey struct {
	name       string
	child      uint32
	parent     uint32
	columns    []string
	on         []string
	definition string
	period     bool // the last column is a range during which the reference holds (PostgreSQL 18)
}

// byOID returns the relation with an OID, or nil.
func (m *model) byOID(oid uint32) *relation {
	for _, r := range m.relations {
		if r.oid == oid {
			return r
		}
	}
	return nil
}

// named returns the relation with a name at the source, or nil.
func (m *model) named(t Table) *relation {
	for _, r := range m.relations {
		if r.Table == t {
			return r
		}
	}
	return nil
}

// tables returns the relations that are tables, parents before children.
func (m *model) tables() []*relation {
	var out []*relation
	for _, r := range m.relations {
		if r.isTable() {
			out = append(out, r)
		}
	}
	return out
}

// within reports whether r is top or below it in partitioning or inheritance.
func (m *model) within(r, top *relation) bool {
	if r == top {
		return true
	}
	for _, parent := range r.parents {
		if p := m.byOID(parent); p != nil && m.within(p, top) {
			return true
		}
	}
	return false
}

// inheritsIdentity reports whether a column of a partition is an identity column of its parent.
func (m *model) inheritsIdentity(r *relation, name string) bool {
	if !r.isPartition {
		return false
	}
	c := m.byOID(r.parents[0]).column(name)
	return c != nil && c.identity != ""
}

// entrance returns the table through which rows of r are loaded: r, or the topmost table above it that may route them to
// another partition than at the source.
func (m *model) entrance(r *relation) *relation {
	into := r
	for r.isPartition {
		if r = m.byOID(r.parents[0]); r.rehashed {
			into = r
		}
	}
	return into
}

// live returns the columns that are not dropped.
func (r *relation) live() []column {
	var out []column
	for _, c := range r.columns {
		if !c.dropped {
			out = append(out, c)
		}
	}
	return out
}

// stored returns the columns that are copied: all but generated ones.
func (r *relation) stored() []string {
	var out []string
	for _, c := range r.live() {
		if !c.generated {
			out = append(out, c.name)
		}
	}
	return out
}

// column returns the column with a name, or nil.
func (r *relation) column(name string) *column {
	for i := range r.columns {
		if r.columns[i].name == name && !r.columns[i].dropped {
			return &r.columns[i]
		}
	}
	return nil
}
