package neighbours

// model is what the source's catalog says about the relations to copy. Expressions in it are as the server prints
// them with an empty search_path: every name outside pg_catalog is qualified.
type model struct {
	database   string
	relations  []*relation // parents before children; views last
	sequences  []sequence
	functions  []function
	statistics []string // CREATE STATISTICS statements
	types      []uint32 // OIDs of the types outside pg_catalog that columns and views use
	keys       []foreignKey
}

// relation is a table, partition, view or materialised view.
type relation struct {
	Table
	oid         uint32
	kind        byte // pg_class.relkind: r, p, v, m
	parents     []uint32
	isPartition bool
	partKey     string // PARTITION BY, "" = none
	partBound   string
	options     []string // storage parameters, name=value
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
	base       uint32 // the type under a domain; else typeOID
	dropped    bool
	notNull    bool
	expression string // default, or what it is generated from
	generated  bool
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
	definition string // CREATE INDEX, as the server prints it
	constraint string // pg_get_constraintdef of the constraint that owns it; "" = none
	parent     uint32 // OID of the index that it is a part of; 0 = none
	oid        uint32
	clustered  bool
	identity   bool     // REPLICA IDENTITY
	unique     []string // the columns that it keeps unique; nil = it does not, or is on an expression
}

// sequence is a sequence that defaults or identity columns of the tables use.
type sequence struct {
	Table
	typ                         string
	start, increment, low, high int64
	cache, last                 int64
	cycle, called               bool
	owner                       uint32 // relation and column that it is owned by; 0 = none
	column                      string
	identity                    bool
}

// function is one in SQL that names a copied relation.
type function struct {
	Table
	oid        uint32
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
