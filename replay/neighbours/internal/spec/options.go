// Package spec is the specification of a set of copies: the options of the commands.
package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Schemas of a set that is not yet, or no longer, current have one of these prefixes, then the epoch and a number. Those
// of copies that are made anew have the last one.
const (
	StagePrefix    = "dpwatch_stage_"
	OldPrefix      = "dpwatch_old_"
	RecreatePrefix = "dpwatch_recreate_"
)

// Relation is the neighbour relation between D0 and D1 (Dwork and Roth 2014, 2.3: add/remove; replace is its bounded
// form).
type Relation string

const (
	Remove  Relation = "remove"  // D0 without one unit
	Replace Relation = "replace" // D0 in which one unit's measures are moved to the farther of their bounds
	Extreme Relation = "extreme" // D0 with one more unit, derived from a chosen one, with its measures at their upper bounds
)

// Method is how neighbour schemas store their rows.
type Method string

const (
	Auto Method = "auto" // Copy while all copies together are smaller than Options.CopyLimit, otherwise View
	Copy Method = "copy" // every neighbour is a full copy
	View Method = "view" // every neighbour is a schema of views over D0 without the unit's rows; Remove only
)

// Rule selects units.
type Rule string

// The rules. Ties are resolved by the smaller key, in the order of the key's type.
const (
	MostRows       Rule = "most_rows"       // the units with the most rows, over all tables
	MostPartitions Rule = "most_partitions" // the units in the most groups of Choice.Columns
	Largest        Rule = "largest"         // the units with the largest value of Choice.Columns[0]
	Smallest       Rule = "smallest"        // the units with the smallest value of Choice.Columns[0]
	Alone          Rule = "alone"           // the units that are alone in the most groups of Choice.Columns
	Random         Rule = "random"          // by a hash of Choice.Seed and the key
)

// Choice requests K units by one rule. Units that an earlier choice took are skipped.
type Choice struct {
	Rule    Rule
	K       int
	Columns []Column // of one table: the groups of MostPartitions and Alone; the single measure of Largest and Smallest
	Seed    int64    // of Random
}

// String describes the choice in lists: "largest public.tx.spent".
func (c Choice) String() string {
	var columns []string
	for _, column := range c.Columns {
		columns = append(columns, column.String())
	}
	if len(columns) == 0 {
		return string(c.Rule)
	}
	return string(c.Rule) + " " + strings.Join(columns, ", ")
}

// Column is a column of a protected table.
type Column struct {
	Table ident.Table
	Name  string
}

// String returns schema.table.column.
func (c Column) String() string { return c.Table.String() + "." + c.Name }

// Unit is the privacy unit.
type Unit struct {
	Table ident.Table
	Key   []string // columns of Table whose values identify a unit; a row with a NULL in one of them belongs to no unit
}

// Path declares how the rows of a table belong to units: to those of the rows of To in which On equals Columns. For a
// table with a declared path, foreign keys are ignored. With Act or Ignore it declares that no row belongs to the person
// that the columns name.
type Path struct {
	Table   ident.Table
	Columns []string // elements as ident.ParseElement reads them
	To      ident.Table
	On      []string // empty = the unit's key, if To is the unit's table
	Where   string   // a condition on the rows of Table; "" = all
	Act     bool     // the columns name who did something with the row: in D1 they name nobody instead of the unit
	Ignore  string   // why the columns may name the unit in D1; To is not set. "" = they may not
}

// Owns reports whether rows belong to units by the path.
func (p Path) Owns() bool { return !p.Act && p.Ignore == "" }

// Measure declares the bounds of a column for the relations Replace and Extreme.
type Measure struct {
	Column    Column
	Low, High string // in the text form of the column's type
}

// Progress is the progress of a step in rows; Total is an estimate.
type Progress struct {
	Step        string
	Done, Total int64
}

// Options configures a set of copies.
type Options struct {
	Source string // connection string of the database with the tables
	Target string // connection string of the shadow database, for a role that may create schemas
	// Control is the schema of the shadow database for the records. It is created if it does not exist.
	Control string
	D0      string
	D1      []string // one schema for each chosen unit
	Twin    string   // schema of a second copy of D0; "" = none
	Guard   string   // schema of a third one, which guards control audits; "" = none
	// GuardLimit is the size of the source's tables, in bytes, above which no guard is made; 0 = any size.
	GuardLimit int64

	Protected []ident.Table // the tables and views to copy; their partitions, children and dependent views are included
	Public    []ident.Table // tables that views may read in place
	Unit      Unit
	Paths     []Path

	SearchPath   []string // search path for unqualified names in the bodies of SQL functions at the source
	Noise        []string // names of functions that draw noise, without schema
	FunctionPath []string // schemas of the engine's functions in the shadow database

	Relation  Relation
	Method    Method
	CopyLimit int64 // bytes, for Auto
	Choose    []Choice
	Measures  []Measure
	Grant     []string // roles that get USAGE and SELECT on the schemas
	Workers   int      // number of neighbours built at the same time

	// Recreate and MostBytes are set by Recreated.
	Recreate  bool
	MostBytes int64 // of the source's tables; 0 = any number

	// RenameBody points the bodies of SQL functions at the copies. nil = functions with such a body are not copied.
	RenameBody body.Renamer

	Progress func(Progress) // may be nil; called concurrently
	Note     func(string)   // may be nil; receives what was left out, and why
}

// Check rejects options that cannot work.
func (o *Options) Check() error {
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	wanted := 0
	for _, c := range o.Choose {
		wanted += c.K
	}
	switch {
	case o.Source == "":
		add("no source: set neighbours.source to the connection string of the database with the protected tables")
	case o.Unit.Table == (ident.Table{}) || len(o.Unit.Key) == 0:
		add("no privacy unit: set privacy.unit: {table: schema.table, key: column}")
	case !slices.Contains(o.Protected, o.Unit.Table):
		add("the unit's table %s is not protected: list it in privacy.protected", o.Unit.Table)
	}
	if wanted == 0 || wanted != len(o.D1) {
		add("neighbours.choose requests %d units, and shadow.d1 names %d schemas: request one unit for each schema", wanted, len(o.D1))
	}
	if o.Relation != Remove && o.Method == View {
		add("method view cannot %s a unit: use method copy, or relation remove", o.Relation)
	}
	if o.Relation != Remove && len(o.Measures) == 0 {
		add("relation %s needs neighbours.measures: the columns whose bounds are declared", o.Relation)
	}
	names := append(o.Schemas(), o.Control)
	for i, name := range names {
		switch {
		case name == "" || len(name) > 63:
			add("%q cannot be the name of a schema", name)
		case slices.Contains(names[:i], name):
			add("the schema %q has two roles: d0, each d1, the twin, the guard and the control schema must differ", name)
		case strings.HasPrefix(name, "pg_") || strings.HasPrefix(name, StagePrefix) || strings.HasPrefix(name, RecreatePrefix):
			add("the schema name %q is reserved", name)
		}
	}
	return errors.Join(faults...)
}

// Recreated returns the options for copies that are made anew, of the same tables and units. They have records, a lock
// and schemas of their own beside those of the set. All are full copies: views over one D0 would share what is drawn for
// D0.
func (o Options) Recreated(most int64) Options {
	o.Recreate, o.MostBytes, o.Control, o.Twin, o.Guard, o.Method = true, most, o.Control+"_recreate", "", "", Copy
	o.D0 = "dpwatch_recreated_d0" // these names identify the units; no schema has them
	d1 := make([]string, len(o.D1))
	for i := range d1 {
		d1[i] = fmt.Sprintf("dpwatch_recreated_d1_%d", i+1)
	}
	o.D1 = d1
	return o
}

// Prefixes returns the prefixes of the names of schemas that are not those of the current set; the first one is for
// schemas that are being built.
func (o *Options) Prefixes() []string {
	if o.Recreate {
		return []string{RecreatePrefix}
	}
	return []string{StagePrefix, OldPrefix}
}

// Schemas returns the schemas of the copies: D0, the neighbours, and the twin and the guard if there are any.
func (o *Options) Schemas() []string { return Schemas(o.D0, o.D1, o.Twin, o.Guard) }

// Schemas returns the schemas of the copies of a set.
func Schemas(d0 string, d1 []string, twins ...string) []string {
	all := append([]string{d0}, d1...)
	for _, twin := range twins {
		if twin != "" {
			all = append(all, twin)
		}
	}
	return all
}

func (o *Options) ReportProgress(step string, done, total int64) {
	if o.Progress != nil {
		o.Progress(Progress{step, done, max(total, done)})
	}
}

func (o *Options) Notef(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}
