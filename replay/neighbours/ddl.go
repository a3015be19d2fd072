package neighbours

import (
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// statement is one definition with the source's names; about names the object.
type statement struct {
	about   string
	sql     string
	defined string // see names.rename
}

// making is a statement that may depend on another of its kind.
type making struct {
	statement
	view     *relation // the view that it creates, or of which it creates an index; nil = none
	function int       // index in model.functions of the function that it creates; -1 = none
}

// definitions are the statements that create one copy, in an order in which they can run. Rows are copied after tables.
type definitions struct {
	sequences []statement
	tables    []statement // columns, CHECK constraints, partitions and children
	indexes   []statement // with primary keys, unique and exclusion constraints
	keys      []statement // foreign keys, extended statistics
	views     []making    // and their indexes
	filled    []statement // values of sequences
}

func define(m *model) *definitions {
	d := &definitions{}
	for _, s := range m.sequences {
		if !s.identity {
			d.sequences = append(d.sequences, statement{"sequence " + s.Name, "CREATE SEQUENCE " + s.SQL() + " AS " + s.typ + sequenceOptions(s), ""})
		}
		d.filled = append(d.filled, statement{
			"sequence " + s.Name,
			fmt.Sprintf("SELECT setval(%s::regclass, %d, %t)", ident.Literal(s.SQL()), s.last, s.called), "",
		})
		if owner := m.byOID(s.owner); owner != nil && !s.identity {
			d.keys = append(d.keys, statement{"sequence " + s.Name, "ALTER SEQUENCE " + s.SQL() + " OWNED BY " + owner.SQL() + "." + ident.Quote(s.column), "BY"})
		}
	}
	for _, r := range m.tables() {
		d.table(m, r)
	}
	for _, r := range m.tables() {
		d.indexesOf(m, r)
	}
	d.foreignKeys(m)
	for _, s := range m.statistics {
		d.keys = append(d.keys, statement{"extended statistics " + s.Name, s.definition, "STATISTICS"})
		if s.target >= 0 {
			set := fmt.Sprintf("ALTER STATISTICS %s SET STATISTICS %d", Table{Schema: s.Schema, Name: s.copy}.SQL(), s.target)
			d.keys = append(d.keys, statement{"extended statistics " + s.Name, set, "STATISTICS"})
		}
	}
	for _, r := range m.relations {
		if !r.isTable() {
			d.view(r)
		}
	}
	return d
}

func sequenceOptions(s sequence) string {
	cycle := " NO CYCLE"
	if s.cycle {
		cycle = " CYCLE"
	}
	return fmt.Sprintf(" INCREMENT %d MINVALUE %d MAXVALUE %d START %d CACHE %d%s", s.increment, s.low, s.high, s.start, s.cache, cycle)
}

// table creates the columns in the order of attnum. For a column that the source dropped, one is created and dropped, so
// that every column has the same attnum. Partitions and children are created separately and attached while they are empty.
func (d *definitions) table(m *model, r *relation) {
	add := func(format string, args ...any) {
		d.tables = append(d.tables, statement{"table " + r.Name, fmt.Sprintf(format, args...), "NAME"})
	}
	var parts []string
	var dropped []string
	for i, c := range r.columns {
		if c.dropped {
			name := fmt.Sprintf("dpwatch dropped %d", i+1)
			dropped = append(dropped, name)
			parts = append(parts, ident.Quote(name)+" int")
			continue
		}
		parts = append(parts, columnDefinition(m, r, c))
	}
	for _, c := range r.checks {
		switch {
		case !strings.HasSuffix(c.definition, " NOT VALID"):
			parts = append(parts, "CONSTRAINT "+ident.Quote(c.name)+" "+c.definition)
		case c.local: // rows may violate it: it is added after them, to the table where it was declared
			d.indexes = append(d.indexes, statement{
				"constraint " + c.name,
				"ALTER TABLE " + r.SQL() + " ADD CONSTRAINT " + ident.Quote(c.name) + " " + c.definition, "",
			})
		}
	}
	create := "CREATE TABLE " + r.SQL() + " (" + strings.Join(parts, ", ") + ")"
	if r.partKey != "" {
		create += " PARTITION BY " + r.partKey
	}
	if len(r.options) > 0 {
		create += " WITH (" + strings.Join(quoteOptions(r.options), ", ") + ")"
	}
	add("%s", create)
	for _, name := range dropped {
		add("ALTER TABLE ONLY %s DROP COLUMN %s", r.SQL(), ident.Quote(name))
	}
	for _, c := range r.live() {
		if c.target >= 0 {
			add("ALTER TABLE ONLY %s ALTER COLUMN %s SET STATISTICS %d", r.SQL(), ident.Quote(c.name), c.target)
		}
		if c.storage != "" {
			add("ALTER TABLE ONLY %s ALTER COLUMN %s SET STORAGE %s", r.SQL(), ident.Quote(c.name), c.storage)
		}
		if len(c.options) > 0 {
			add("ALTER TABLE ONLY %s ALTER COLUMN %s SET (%s)", r.SQL(), ident.Quote(c.name), strings.Join(quoteOptions(c.options), ", "))
		}
	}
	for _, oid := range r.parents {
		parent := m.byOID(oid)
		if r.isPartition {
			add("ALTER TABLE ONLY %s ATTACH PARTITION %s %s", parent.SQL(), r.SQL(), r.partBound)
		} else {
			add("ALTER TABLE ONLY %s INHERIT %s", r.SQL(), parent.SQL())
		}
	}
}

// quoteOptions converts name=value pairs of pg_class.reloptions to name='value'.
func quoteOptions(options []string) []string {
	out := make([]string, len(options))
	for i, option := range options {
		name, value, _ := strings.Cut(option, "=")
		out[i] = name + "=" + ident.Literal(value)
	}
	return out
}

// columnDefinition returns the column definition for CREATE TABLE.
func columnDefinition(m *model, r *relation, c column) string {
	text := ident.Quote(c.name) + " " + c.typ
	if c.collation != "" {
		text += " COLLATE " + c.collation
	}
	switch {
	case c.generated:
		text += " GENERATED ALWAYS AS (" + c.expression + ")"
		if !c.virtual {
			text += " STORED"
		}
	case c.identity != "" && !m.inheritsIdentity(r, c.name): // since PostgreSQL 17 an attached partition has its parent's identity
		when := "BY DEFAULT"
		if c.identity == "a" {
			when = "ALWAYS"
		}
		text += " GENERATED " + when + " AS IDENTITY"
		for _, s := range m.sequences {
			if s.identity && s.owner == r.oid && s.column == c.name {
				text += " (SEQUENCE NAME " + s.SQL() + sequenceOptions(s) + ")" // the syntax of pg_dump --binary-upgrade
			}
		}
	case c.expression != "" && c.identity == "":
		text += " DEFAULT " + c.expression
	}
	if c.notNull {
		text += " NOT NULL"
	}
	return text
}

// indexesOf creates each index under its name and attaches it to the partitioned index that it belongs to.
func (d *definitions) indexesOf(m *model, r *relation) {
	for _, i := range r.indexes {
		about := "index " + i.name
		add := func(format string, args ...any) {
			d.indexes = append(d.indexes, statement{about, fmt.Sprintf(format, args...), ""})
		}
		switch {
		case i.constraint != "" && r.isTable():
			add("ALTER TABLE ONLY %s ADD CONSTRAINT %s %s", r.SQL(), ident.Quote(i.name), i.constraint)
		default:
			add("%s", i.definition) // the server prints ON ONLY for an index on a partitioned table
		}
		if i.clustered {
			add("ALTER TABLE ONLY %s CLUSTER ON %s", r.SQL(), ident.Quote(i.name))
		}
		if i.identity {
			add("ALTER TABLE ONLY %s REPLICA IDENTITY USING INDEX %s", r.SQL(), ident.Quote(i.name))
		}
		if i.parent == 0 {
			continue
		}
		for _, p := range m.relations {
			for _, whole := range p.indexes {
				if whole.oid == i.parent {
					add("ALTER INDEX %s ATTACH PARTITION %s", Table{Schema: p.Schema, Name: whole.name}.SQL(), Table{Schema: r.Schema, Name: i.name}.SQL())
				}
			}
		}
	}
}

// foreignKeys creates them NOT VALID: the rows were valid at the source, the planner treats both kinds alike, and a
// reference of another unit's row to a removed unit stays. A partitioned table cannot have such a key, so each of its
// partitions gets one. A partition's own keys come first: for a key that references a partitioned table the server creates
// further ones, with names that are free.
func (d *definitions) foreignKeys(m *model) {
	for _, own := range []bool{true, false} {
		for _, k := range m.keys {
			child := m.byOID(k.child)
			if child.stores() != own {
				continue
			}
			for _, r := range m.tables() {
				if r != child && (own || !m.within(r, child)) || !r.stores() {
					continue
				}
				definition := strings.TrimSuffix(k.definition, " NOT VALID") + " NOT VALID"
				d.keys = append(d.keys, statement{
					"foreign key " + k.name,
					fmt.Sprintf("ALTER TABLE ONLY %s ADD CONSTRAINT %s %s", r.SQL(), ident.Quote(k.name), definition), "",
				})
			}
		}
	}
}

func (d *definitions) view(r *relation) {
	with := ""
	if len(r.options) > 0 {
		with = " WITH (" + strings.Join(quoteOptions(r.options), ", ") + ")"
	}
	columns := make([]string, 0, len(r.columns))
	for _, c := range r.live() {
		columns = append(columns, c.name)
	}
	kind := "VIEW"
	if r.kind == 'm' {
		kind = "MATERIALIZED VIEW"
	}
	d.views = append(d.views, making{statement{
		"view " + r.Name,
		"CREATE " + kind + " " + r.SQL() + " (" + ident.List(columns) + ")" + with + " AS " + r.view, "",
	}, r, -1})
	for _, i := range r.indexes {
		d.views = append(d.views, making{statement{"index " + i.name, i.definition, ""}, r, -1})
	}
}
