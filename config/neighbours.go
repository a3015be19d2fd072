package config

import (
	"fmt"
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Unit is the privacy unit: its table and the columns of its key.
type Unit struct {
	Table string   `yaml:"table"` // schema.table
	Key   []string `yaml:"key"`
}

// Path describes how the rows of a table belong to units, if there are no foreign keys or too many; or with Act or
// Ignore that columns name persons to whom no row belongs.
type Path struct {
	Table   string   `yaml:"table"`   // schema.table
	Columns []string `yaml:"columns"` // with those of elements of an array, name[], and of keys of JSON, name->key
	To      string   `yaml:"to"`      // schema.table
	On      []string `yaml:"on"`      // columns of to; empty = the unit's key
	Where   string   `yaml:"where"`   // a condition in SQL on the rows of the table; "" = all
	Act     bool     `yaml:"act"`     // who did something with the row, which does not belong to them
	Ignore  string   `yaml:"ignore"`  // why the columns may name a removed unit; "" = they may not
}

// Neighbours configures how the shadow copies are made.
type Neighbours struct {
	Source    Secret    `yaml:"source"`   // "" = dpwatch does not make copies
	Target    Secret    `yaml:"target"`   // "" = shadow.dsn
	Relation  string    `yaml:"relation"` // remove | replace | extreme
	Method    string    `yaml:"method"`   // auto | copy | view
	CopyLimit ByteSize  `yaml:"copy_limit"`
	Grant     []string  `yaml:"grant"` // roles; empty = the role of shadow.dsn
	Choose    []Choice  `yaml:"choose"`
	Measures  []Measure `yaml:"measures"`
}

// Choice selects K units by one rule.
type Choice struct {
	Rule    string   `yaml:"rule"`
	K       int      `yaml:"k"`
	Columns []string `yaml:"columns"` // schema.table.column
	Seed    int      `yaml:"seed"`
}

// Measure declares the bounds of a column.
type Measure struct {
	Column string  `yaml:"column"` // schema.table.column
	Low    float64 `yaml:"low"`
	High   float64 `yaml:"high"`
}

func defaultNeighbours() Neighbours {
	return Neighbours{
		Relation: "remove", Method: "auto", CopyLimit: 50 << 30,
		Choose: []Choice{{Rule: "most_rows", K: 1}, {Rule: "random", K: 1, Seed: 1}},
	}
}

// ControlSchema returns the schema in the shadow database that records the set of copies: dpwatch, or dpwatch_NAME for
// another D0 than d0, so that several sets fit into one database.
func (c *Config) ControlSchema() string {
	if c.Shadow.D0 == Default().Shadow.D0 {
		return "dpwatch"
	}
	return "dpwatch_" + c.Shadow.D0
}

// Configured reports whether dpwatch makes the copies.
func (n *Neighbours) Configured() bool { return n.Source != "" }

// units returns the number of chosen units.
func (n *Neighbours) units() int {
	sum := 0
	for _, c := range n.Choose {
		sum += c.K
	}
	return sum
}

// maxUnits bounds the neighbours of one set: each is a schema, and an audit replays on all of them.
const maxUnits = 1000

// neighbours validates the section. If dpwatch makes the copies and the file does not set shadow.d1, it sets it to
// d1_1, d1_2 and so on, and shadow.twin to the name of D0 and _twin.
func (e *engineSections) neighbours(c *Config) {
	n := &c.Neighbours
	for i := range n.Choose {
		if n.Choose[i].K == 0 {
			n.Choose[i].K = 1
		}
	}
	e.oneOf("neighbours.relation", n.Relation, "remove", "replace", "extreme")
	e.oneOf("neighbours.method", n.Method, "auto", "copy", "view")
	e.choices(n.Choose)
	e.units(&c.Privacy)
	for i, m := range n.Measures {
		path := fmt.Sprintf("neighbours.measures[%d]", i)
		e.columnName(path+".column", m.Column)
		if !(m.Low < m.High) {
			e.add(path+".low", "must be less than high")
		}
	}
	if !n.Configured() {
		return
	}
	e.connection("neighbours.source", n.Source)
	e.connection("neighbours.target", n.Target)
	if c.Privacy.Unit == nil {
		e.add("privacy.unit", "missing: neighbours differ by a privacy unit, for example {table: public.users, key: id}")
	}
	if len(c.ControlSchema()) > ident.MaxBytes {
		e.add("shadow.d0", "is too long: the schema %s, which records the copies, would have more than %d bytes", c.ControlSchema(), ident.MaxBytes)
	}
	if n.Relation != "remove" && len(n.Measures) == 0 {
		e.add("neighbours.measures", "missing: relation %s needs the columns whose bounds are declared: - {column: public.tx.spent, low: 0, high: 500}", n.Relation)
	}
	if n.Relation != "remove" && n.Method == "view" {
		e.add("neighbours.method", "view cannot %s a unit: use copy, or relation remove", n.Relation)
	}
	switch k := n.units(); {
	case k > maxUnits:
		e.add("neighbours.choose", "selects %d units; the maximum is %d", k, maxUnits)
	case !e.isSet("shadow.d1"):
		c.Shadow.D1 = nil
		for i := range k {
			c.Shadow.D1 = append(c.Shadow.D1, fmt.Sprintf("d1_%d", i+1))
		}
	case k != len(c.Shadow.D1):
		e.add("neighbours.choose", "selects %d units, but shadow.d1 names %d schemas: use the same number, or omit shadow.d1", k, len(c.Shadow.D1))
	}
	// A configuration with an engine for each copy has a twin only if it names the engine of the twin, too.
	if c.Shadow.Twin == "" && !(c.Shadow.OwnEngines() && len(c.Shadow.Engine.DSN) == len(c.Shadow.Copies())) {
		c.Shadow.Twin = c.Shadow.D0 + "_twin"
	}
}

// units validates the privacy unit and the paths to it.
func (e *engineSections) units(p *Privacy) {
	protected := func(path, name string) {
		if !slices.Contains(p.Protected, name) {
			e.add(path, "%q is not listed in privacy.protected", name)
		}
	}
	if u := p.Unit; u != nil {
		protected("privacy.unit.table", u.Table)
		if len(u.Key) == 0 {
			e.add("privacy.unit.key", "missing: the column or columns of %s that identify a unit", u.Table)
		}
	}
	for i, x := range p.Paths {
		path := fmt.Sprintf("privacy.paths[%d]", i)
		protected(path+".table", x.Table)
		e.elements(path, x.Columns)
		if slices.ContainsFunc(p.Paths[:i], func(y Path) bool {
			return x.Table == y.Table && x.To == y.To && x.Where == y.Where && slices.Equal(x.Columns, y.Columns) && slices.Equal(x.On, y.On)
		}) {
			e.add(path, "is the same as an earlier line")
		}
		if x.Ignore != "" {
			switch {
			case len(x.Columns) == 0:
				e.add(path+".columns", "missing: the columns of %s that may name a removed unit", x.Table)
			case x.To != "" || len(x.On) > 0 || x.Where != "" || x.Act:
				e.add(path+".ignore", "is a line without to, on, where and act: what is ignored is no path")
			}
			continue
		}
		protected(path+".to", x.To)
		switch {
		case len(x.Columns) == 0:
			e.add(path+".columns", "missing: the columns of %s that reference %s", x.Table, x.To)
		case len(x.On) > 0 && len(x.On) != len(x.Columns):
			e.add(path+".on", "has %d columns, but columns has %d", len(x.On), len(x.Columns))
		case len(x.On) == 0 && p.Unit != nil && x.To != p.Unit.Table:
			e.add(path+".on", "missing: the columns of %s that are referenced", x.To)
		}
	}
}

// elements validates the columns of a path.
func (e *engineSections) elements(path string, columns []string) {
	for j, name := range columns {
		element, ok := ident.ParseElement(name)
		switch at := fmt.Sprintf("%s.columns[%d]", path, j); {
		case !ok:
			e.add(at, "must be a column, the elements of an array as members[], or a key of JSON as data->user->id")
		case !element.Plain() && len(columns) > 1:
			e.add(at, "elements of an array and keys of JSON are a path alone, not with further columns")
		}
	}
}

func (e *engineSections) choices(choices []Choice) {
	for i, c := range choices {
		path := fmt.Sprintf("neighbours.choose[%d]", i)
		e.oneOf(path+".rule", c.Rule, "most_rows", "most_partitions", "largest", "smallest", "alone", "random")
		e.atLeast(path+".k", c.K, 1)
		wants := !slices.Contains([]string{"most_rows", "random"}, c.Rule)
		switch {
		case wants && len(c.Columns) == 0:
			e.add(path+".columns", "missing: rule %s needs columns, as schema.table.column", c.Rule)
		case !wants && len(c.Columns) > 0:
			e.add(path+".columns", "rule %s takes no columns", c.Rule)
		}
		for j, name := range c.Columns {
			e.columnName(fmt.Sprintf("%s.columns[%d]", path, j), name)
		}
	}
}
