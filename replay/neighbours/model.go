package neighbours

// model is what the source's catalog says about the relations to copy. Expressions in it are as the server prints
// them with an empty search_path: every name outside pg_catalog is qualified.
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
	copy        string // its name in the copies; see discovery.names
	oid         uint32
	kind        byte // pg_class.relkind: r, p, v, m
	parents     []uint32
	isPartition bool
	partKey     string // PARTITION BY, "" = none
	partBound   string
	rehashed    bool     // partitioned by a hash of values that another database may hash in another way: an enum's, say
	options     []string // storage parameters, name=value
	storage     string   // by which access method, and whether unlogged
	columns     []column
	checks      []constraint
	indexes     []index
	view        string // the query of a view, without semicolon
	rows        int64  // the planner's estimate
	bytes       int64  // on disk, with indexes
}

// stores reports whether the relation holds rows itself.
func (r *relation) stores() bool { return r.kind == 'r' }

// isTable reports whether it is a table, partitioned or not.
func (r *relation) isTable() bool { return r.kind == 'r' || r.kind == 'p' }

// column is one attribute in the order of attnum, dropped ones included.
type column struct {
	name       string
	typ        string // format_type
	typeOID    uint32
	base       uint32 // the type under a domain, and under domains over domains; text for citext; else typeOID
	dropped    bool
	notNull    bool
	expression string // default, or what it is generated from
	generated  bool
	virtual    bool   // generated when it is read, since PostgreSQL 18
	identity   string // "a" always, "d" by default, "" none
	collation  string // quoted and qualified; "" = the type's
	target     int    // statistics target, -1 = default
	storage    string // "" = the type's
	options    []string
}

// constraint is a CHECK; local: declared at the table, not inherited alone.
type constraint struct {
	name, definition string
	local            bool
}

// index is an index, or the constraint that it serves.
type index struct {
	name       string
	quoted     string // the name as definition has it
	definition string // CREATE INDEX, as the server prints it
	constraint string // pg_get_constraintdef of the constraint that owns it; "" = none
	parent     uint32 // OID of the index that it is a part of; 0 = none
	oid        uint32
	clustered  bool
	identity   bool     // REPLICA IDENTITY
	unique     []string // the columns in which two rows may not be equal in all, which an exclusion constraint says of those with =; nil = none, or an expression
}

// statistics is an extended statistics object.
type statistics struct {
	Table             // its name
	copy       string // its name in the copies
	quoted     string // the qualified name as definition has it
	definition string // CREATE STATISTICS
	target     int    // -1 = default
}

// sequence is a sequence that defaults or identity columns of the tables use.
type sequence struct {
	Table
	copy                        string // its name in the copies
	typ                         string
	start, increment, low, high int64
	cache, last                 int64
	cycle, called               bool
	owner                       uint32 // relation and column that it is owned by; 0 = none
	column                      string
	identity                    bool
}

// function is one in SQL that names a copied relation, or has the name of one that does.
type function struct {
	Table
	copy       string // its name in the copies
	oid        uint32
	why        byte // 'r' it takes or returns rows of a copied relation, 't' it may read one, 'n' its name alone
	definition string
	body       string // "" = BEGIN ATOMIC, which the definition holds with its names resolved
	arguments  int
	path       string // search_path that it sets, "" = none
}

// foreignKey is one between copied tables.
type foreignKey struct {
	name       string
	child      uint32
	parent     uint32
	columns    []string
	on         []string
	definition string
	period     bool // the last column is a time for which the reference holds (PostgreSQL 18)
}

// byOID finds a relation.
func (m *model) byOID(oid uint32) *relation {
	for _, r := range m.relations {
		if r.oid == oid {
			return r
		}
	}
	return nil
}

// named finds a relation by its name at the source.
func (m *model) named(t Table) *relation {
	for _, r := range m.relations {
		if r.Table == t {
			return r
		}
	}
	return nil
}

// tables are the relations that are tables, parents before children.
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

// entrance is the table through which rows of r are loaded: r, or the topmost one above it that may put them into another
// partition than the source did.
func (m *model) entrance(r *relation) *relation {
	into := r
	for r.isPartition {
		if r = m.byOID(r.parents[0]); r.rehashed {
			into = r
		}
	}
	return into
}

// live are the columns that a row has.
func (r *relation) live() []column {
	var out []column
	for _, c := range r.columns {
		if !c.dropped {
			out = append(out, c)
		}
	}
	return out
}

// stored are the columns that are copied: generated ones compute themselves.
func (r *relation) stored() []string {
	var out []string
	for _, c := range r.live() {
		if !c.generated {
			out = append(out, c.name)
		}
	}
	return out
}

// column finds a column by name.
func (r *relation) column(name string) *column {
	for i := range r.columns {
		if r.columns[i].name == name && !r.columns[i].dropped {
			return &r.columns[i]
		}
	}
	return nil
}
