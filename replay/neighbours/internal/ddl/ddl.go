// Package ddl writes the definitions of package source as statements that create a copy under other names, and as lines
// by which two schemas are compared. It does not run them.
package ddl

import (
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
)

// Statement is one definition with the source's names; about names the object.
type Statement struct {
	About   string
	SQL     string
	Defined string // see names.rename
}

// Making is a statement that may depend on another of its kind.
type Making struct {
	Statement
	View     *source.Relation // the view that it creates, or of which it creates an index; nil = none
	Function int              // index in model.functions of the function that it creates; -1 = none
}

// Definitions are the statements that create one copy, in an order in which they can run. Rows are copied after tables.
type Definitions struct {
	Sequences []Statement
	Tables    []Statement // columns, CHECK constraints, partitions and children
	Indexes   []Statement // with primary keys, unique and exclusion constraints
	Keys      []Statement // foreign keys, extended statistics
	Views     []Making    // and their indexes
	Filled    []Statement // values of sequences
}

func Define(m *source.Model) *Definitions {
	d := &Definitions{}
	for _, s := range m.Sequences {
		if !s.Identity {
			d.Sequences = append(d.Sequences, Statement{"sequence " + s.Name, "CREATE SEQUENCE " + s.SQL() + " AS " + s.Type + sequenceOptions(s), ""})
		}
		d.Filled = append(d.Filled, Statement{
			"sequence " + s.Name,
			fmt.Sprintf("SELECT setval(%s::regclass, %d, %t)", ident.Literal(s.SQL()), s.Last, s.Called), "",
		})
		if owner := m.ByOID(s.Owner); owner != nil && !s.Identity {
			d.Keys = append(d.Keys, Statement{"sequence " + s.Name, "ALTER SEQUENCE " + s.SQL() + " OWNED BY " + owner.SQL() + "." + ident.Quote(s.Column), "BY"})
		}
	}
	for _, r := range m.Tables() {
		d.table(m, r)
	}
	for _, r := range m.Tables() {
		d.indexesOf(m, r)
	}
	d.foreignKeys(m)
	for _, s := range m.Statistics {
		d.Keys = append(d.Keys, Statement{"extended statistics " + s.Name, s.Definition, "STATISTICS"})
		if s.Target >= 0 {
			set := fmt.Sprintf("ALTER STATISTICS %s SET STATISTICS %d", ident.Table{Schema: s.Schema, Name: s.Copy}.SQL(), s.Target)
			d.Keys = append(d.Keys, Statement{"extended statistics " + s.Name, set, "STATISTICS"})
		}
	}
	for _, r := range m.Relations {
		if !r.IsTable() {
			d.view(r)
		}
	}
	return d
}

func sequenceOptions(s source.Sequence) string {
	cycle := " NO CYCLE"
	if s.Cycle {
		cycle = " CYCLE"
	}
	return fmt.Sprintf(" INCREMENT %d MINVALUE %d MAXVALUE %d START %d CACHE %d%s", s.Increment, s.Low, s.High, s.Start, s.Cache, cycle)
}

// table creates the columns in the order of attnum. For a column that the source dropped, one is created and dropped,
// so that every column has the same attnum. Partitions and children are created separately and attached while they are
// empty.
func (d *Definitions) table(m *source.Model, r *source.Relation) {
	add := func(format string, args ...any) {
		d.Tables = append(d.Tables, Statement{"table " + r.Name, fmt.Sprintf(format, args...), "NAME"})
	}
	var parts []string
	var dropped []string
	for i, c := range r.Columns {
		if c.Dropped {
			name := fmt.Sprintf("dpwatch dropped %d", i+1)
			dropped = append(dropped, name)
			parts = append(parts, ident.Quote(name)+" int")
			continue
		}
		parts = append(parts, columnDefinition(m, r, c))
	}
	for _, c := range r.Checks {
		switch {
		case !strings.HasSuffix(c.Definition, " NOT VALID"):
			parts = append(parts, "CONSTRAINT "+ident.Quote(c.Name)+" "+c.Definition)
		case c.Local: // rows may violate it: it is added after them, to the table where it was declared
			d.Indexes = append(d.Indexes, Statement{
				"constraint " + c.Name,
				"ALTER TABLE " + r.SQL() + " ADD CONSTRAINT " + ident.Quote(c.Name) + " " + c.Definition, "",
			})
		}
	}
	create := "CREATE TABLE " + r.SQL() + " (" + strings.Join(parts, ", ") + ")"
	if r.PartKey != "" {
		create += " PARTITION BY " + r.PartKey
	}
	if len(r.Options) > 0 {
		create += " WITH (" + strings.Join(quoteOptions(r.Options), ", ") + ")"
	}
	add("%s", create)
	for _, name := range dropped {
		add("ALTER TABLE ONLY %s DROP COLUMN %s", r.SQL(), ident.Quote(name))
	}
	for _, c := range r.Live() {
		if c.Target >= 0 {
			add("ALTER TABLE ONLY %s ALTER COLUMN %s SET STATISTICS %d", r.SQL(), ident.Quote(c.Name), c.Target)
		}
		if c.Storage != "" {
			add("ALTER TABLE ONLY %s ALTER COLUMN %s SET STORAGE %s", r.SQL(), ident.Quote(c.Name), c.Storage)
		}
		if len(c.Options) > 0 {
			add("ALTER TABLE ONLY %s ALTER COLUMN %s SET (%s)", r.SQL(), ident.Quote(c.Name), strings.Join(quoteOptions(c.Options), ", "))
		}
	}
	for _, oid := range r.Parents {
		parent := m.ByOID(oid)
		if r.IsPartition {
			add("ALTER TABLE ONLY %s ATTACH PARTITION %s %s", parent.SQL(), r.SQL(), r.PartBound)
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
func columnDefinition(m *source.Model, r *source.Relation, c source.Column) string {
	text := ident.Quote(c.Name) + " " + c.Type
	if c.Collation != "" {
		text += " COLLATE " + c.Collation
	}
	switch {
	case c.Generated:
		text += " GENERATED ALWAYS AS (" + c.Expression + ")"
		if !c.Virtual {
			text += " STORED"
		}
	case c.Identity != "" && !m.InheritsIdentity(r, c.Name): // since PostgreSQL 17 an attached partition has its parent's identity
		when := "BY DEFAULT"
		if c.Identity == "a" {
			when = "ALWAYS"
		}
		text += " GENERATED " + when + " AS IDENTITY"
		for _, s := range m.Sequences {
			if s.Identity && s.Owner == r.OID && s.Column == c.Name {
				text += " (SEQUENCE NAME " + s.SQL() + sequenceOptions(s) + ")" // the syntax of pg_dump --binary-upgrade
			}
		}
	case c.Expression != "" && c.Identity == "":
		text += " DEFAULT " + c.Expression
	}
	if c.NotNull {
		text += " NOT NULL"
	}
	return text
}

// indexesOf creates each index under its name and attaches it to the partitioned index that it belongs to.
func (d *Definitions) indexesOf(m *source.Model, r *source.Relation) {
	for _, i := range r.Indexes {
		about := "index " + i.Name
		add := func(format string, args ...any) {
			d.Indexes = append(d.Indexes, Statement{about, fmt.Sprintf(format, args...), ""})
		}
		switch {
		case i.Constraint != "" && r.IsTable():
			add("ALTER TABLE ONLY %s ADD CONSTRAINT %s %s", r.SQL(), ident.Quote(i.Name), i.Constraint)
		default:
			add("%s", i.Definition) // the server prints ON ONLY for an index on a partitioned table
		}
		if i.Clustered {
			add("ALTER TABLE ONLY %s CLUSTER ON %s", r.SQL(), ident.Quote(i.Name))
		}
		if i.Identity {
			add("ALTER TABLE ONLY %s REPLICA IDENTITY USING INDEX %s", r.SQL(), ident.Quote(i.Name))
		}
		if i.Parent == 0 {
			continue
		}
		for _, p := range m.Relations {
			for _, whole := range p.Indexes {
				if whole.OID == i.Parent {
					add("ALTER INDEX %s ATTACH PARTITION %s", ident.Table{Schema: p.Schema, Name: whole.Name}.SQL(), ident.Table{Schema: r.Schema, Name: i.Name}.SQL())
				}
			}
		}
	}
}

// foreignKeys creates them NOT VALID: the rows were valid at the source, the planner treats both kinds alike, and a
// reference of another unit's row to a removed unit stays. A partitioned table cannot have such a key, so each of its
// partitions gets one. A partition's own keys come first: for a key that references a partitioned table the server
// creates further ones, with names that are free.
func (d *Definitions) foreignKeys(m *source.Model) {
	for _, own := range []bool{true, false} {
		for _, k := range m.Keys {
			child := m.ByOID(k.Child)
			if child.Stores() != own {
				continue
			}
			for _, r := range m.Tables() {
				if r != child && (own || !m.Within(r, child)) || !r.Stores() {
					continue
				}
				definition := strings.TrimSuffix(k.Definition, " NOT VALID") + " NOT VALID"
				d.Keys = append(d.Keys, Statement{
					"foreign key " + k.Name,
					fmt.Sprintf("ALTER TABLE ONLY %s ADD CONSTRAINT %s %s", r.SQL(), ident.Quote(k.Name), definition), "",
				})
			}
		}
	}
}

func (d *Definitions) view(r *source.Relation) {
	with := ""
	if len(r.Options) > 0 {
		with = " WITH (" + strings.Join(quoteOptions(r.Options), ", ") + ")"
	}
	kind := "VIEW"
	if r.Kind == catalog.KindMaterialized {
		kind = "MATERIALIZED VIEW"
	}
	d.Views = append(d.Views, Making{Statement{
		"view " + r.Name,
		"CREATE " + kind + " " + r.SQL() + " (" + ident.List(r.Names()) + ")" + with + " AS " + r.View, "",
	}, r, -1})
	for _, i := range r.Indexes {
		d.Views = append(d.Views, Making{Statement{"index " + i.Name, i.Definition, ""}, r, -1})
	}
}
