// Package verify compares a set of copies with the source, and the copies with each other.
package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/ddl"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/shadow"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/units"
)

// Difference is the result of verifying D0 and one neighbour.
type Difference struct {
	Schema  string
	Unit    string           // the pseudonym
	Removed map[string]int64 // rows of the unit in D0, by table
	Added   map[string]int64 // rows of the unit in the neighbour, by table
	Faults  []string         // empty = the pair differs by exactly this unit
	// Tables say what was looked at, for relation Remove; Warnings what may be wrong.
	Tables   []TableLoss
	Warnings []string
}

// Report is the result of verifying a set.
type Report struct {
	Set    shadow.Set
	Pairs  []Difference
	Twin   *Twin    // nil = the set has none
	Guard  *Twin    // nil = the set has none
	Faults []string // of D0 itself, and its differences from the source; empty = none
	// NotCompared is why D0 was not compared with the source; empty = it was.
	NotCompared string
}

// OK reports whether no faults were found in what was compared.
func (r *Report) OK() bool {
	return len(r.Faults) == 0 && (r.Twin == nil || len(r.Twin.Faults) == 0) && (r.Guard == nil || len(r.Guard.Faults) == 0) &&
		!slices.ContainsFunc(r.Pairs, func(d Difference) bool { return len(d.Faults) > 0 })
}

// Run verifies the current set: see neighbours.Verify.
func Run(ctx context.Context, o spec.Options) (Report, error) {
	s, err := shadow.Open(ctx, &o, false)
	if err != nil {
		return Report{}, err
	}
	defer s.Close(ctx)
	set, err := s.Current(ctx)
	report := Report{Set: set}
	if err != nil {
		return report, err
	}
	members, err := s.Members(ctx, set)
	if err != nil {
		return report, s.Explain(err)
	}
	for _, schema := range set.Schemas() {
		if err := s.CheckComplete(ctx, schema, set.Tables); err != nil {
			return report, err
		}
	}
	v := &verifier{DB: s, set: set, worlds: map[string]*worldSums{}}
	if err := v.readD0(ctx, members); err != nil {
		return report, fmt.Errorf("verify d0: %w", s.Explain(err))
	}
	if report.Faults, err = v.condition(ctx, set.D0, v.worlds[set.D0]); err != nil {
		return report, fmt.Errorf("verify d0: %w", s.Explain(err))
	}
	faults, unread, err := v.compareSource(ctx)
	if err != nil {
		return report, fmt.Errorf("compare d0 with the source: %w", s.Explain(err))
	}
	report.Faults = append(report.Faults, faults...)
	if unread != nil {
		report.NotCompared = unread.Error()
	}
	for i, m := range members {
		d, err := v.compare(ctx, i+1, m)
		if err != nil {
			return report, fmt.Errorf("verify %s: %w", m.Schema, s.Explain(err))
		}
		o.ReportProgress("verify "+m.Schema, int64(i+1), int64(len(members)))
		report.Pairs = append(report.Pairs, d)
	}
	if report.Twin, err = v.compareTwin(ctx, set.Twin); err != nil {
		return report, fmt.Errorf("verify %s: %w", set.Twin, s.Explain(err))
	}
	if report.Guard, err = v.compareTwin(ctx, set.Guard); err != nil {
		return report, fmt.Errorf("verify %s: %w", set.Guard, s.Explain(err))
	}
	return report, s.RecordVerified(ctx, set.Epoch, report.OK())
}

// verifier compares the worlds of one set.
type verifier struct {
	*shadow.DB
	set    shadow.Set
	m      *source.Model // of D0, with the configured paths
	g      *source.Graph
	fresh  *source.Fresh // the columns with new values in an added unit; nil for other relations
	worlds map[string]*worldSums
	d0     *ddl.Description
	// mentions are the columns of D0 that name units; nil for other relations than Remove.
	mentions *units.Mentions
	labels   []string // the security labels of D0
}

// readD0 reads D0's present catalog and its checksums for every unit.
func (v *verifier) readD0(ctx context.Context, members []shadow.Member) error {
	var err error
	if v.m, v.g, err = v.readWorld(ctx, v.set.D0); err != nil {
		return err
	}
	if v.d0, v.labels, err = v.describe(ctx, v.set.D0); err != nil {
		return err
	}
	if v.set.Relation == spec.Extreme {
		if v.fresh, err = v.g.Fresh(); err != nil {
			return err
		}
	}
	if v.set.Relation == spec.Remove {
		found, err := units.Search(ctx, v.Options)
		if err != nil && ctx.Err() == nil { // NOT COMPARED says why
			found, err = units.SearchCopy(ctx, v.Conn, v.g, v.Options)
		}
		if err != nil {
			return fmt.Errorf("search for columns that name units: %w", err)
		}
		v.mentions = units.NewMentions(found, v.g)
	}
	keys := map[int][]string{}
	for i, m := range members {
		keys[i+1] = m.Key
	}
	v.worlds[v.set.D0], err = v.sums(ctx, v.set.D0, keys)
	return err
}

// readWorld reads the model of a schema of copies, and how its rows belong to units.
func (v *verifier) readWorld(ctx context.Context, schema string) (*source.Model, *source.Graph, error) {
	o := *v.Options
	o.Note = nil
	o.Protected, o.Paths = nil, nil
	o.Unit.Table.Schema = schema
	for _, t := range v.Options.Protected {
		o.Protected = append(o.Protected, ident.Table{Schema: schema, Name: t.Name})
	}
	for _, p := range v.Options.Paths {
		p.Table.Schema, p.To.Schema = schema, schema
		o.Paths = append(o.Paths, p)
	}
	o.Measures = slices.Clone(o.Measures)
	for i := range o.Measures {
		o.Measures[i].Column.Table.Schema = schema
	}
	var m *source.Model
	err := pgx.BeginTxFunc(ctx, v.Conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		if _, err = tx.Exec(ctx, "SET LOCAL search_path TO pg_catalog"); err != nil {
			return err
		}
		m, err = source.Read(ctx, tx, &o, false)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	g, err := source.NewGraph(m, &o)
	return m, g, err
}

// compare verifies one pair and returns its faults.
func (v *verifier) compare(ctx context.Context, number int, m shadow.Member) (Difference, error) {
	d := Difference{Schema: m.Schema, Unit: m.Unit, Removed: map[string]int64{}, Added: map[string]int64{}}
	var err error
	if d.Faults, err = v.definitions(ctx, m.Schema); err != nil {
		return d, err
	}
	d0 := v.worlds[v.set.D0]
	key := m.Key
	if v.set.Relation == spec.Extreme {
		if key, err = v.newKey(ctx, m.Schema); err != nil {
			return d, err
		}
		if key == nil {
			d.Faults = append(d.Faults, "it holds no unit that D0 does not hold, or more than one")
			return d, nil
		}
	}
	d1, err := v.sums(ctx, m.Schema, map[int][]string{number: key})
	if err != nil {
		return d, err
	}
	faults, err := v.condition(ctx, m.Schema, d1)
	if err != nil {
		return d, err
	}
	d.Faults = slices.Concat(d.Faults, faults, v.unitFaults(d0, d1, number))
	differs := false
	for _, r := range v.m.Tables() {
		if !r.Stores() {
			if own, view := d1.all[r.Name]; view && own != (checksum{}) {
				d.Faults = append(d.Faults, fmt.Sprintf("table %s: its view has other rows than those of its partitions", r.Name))
			}
			continue
		}
		before, after := d0.units[unitTable{number, r.Name}].rows, d1.units[unitTable{number, r.Name}].rows
		if v.set.Relation == spec.Extreme {
			before = checksum{} // the added unit is not in D0
		}
		rest0, rest1 := d0.all[r.Name].minus(before), d1.all[r.Name].minus(after)
		if others := d0.units[unitTable{number, r.Name}].others; others != nil {
			rest0 = *others
		}
		if rest0 != rest1 {
			d.Faults = append(d.Faults, fmt.Sprintf("table %s: rows of other units differ (%d in D0, %d here)", r.Name, rest0.Rows, rest1.Rows))
		}
		differs = differs || before != after
		if v.set.Relation == spec.Remove && after.Rows > 0 {
			d.Faults = append(d.Faults, fmt.Sprintf("table %s: %d rows of the unit are still there", r.Name, after.Rows))
		}
		if before.Rows > 0 {
			d.Removed[r.Name] = before.Rows
		}
		if after.Rows > 0 {
			d.Added[r.Name] = after.Rows
		}
	}
	d.judge(d0.losses[number], v.mentions)
	if !differs {
		d.Faults = append(d.Faults, "no row differs: it is D0 itself")
	}
	return d, nil
}

// definitions compares the definitions and the sequences of a schema of the set with those of D0.
func (v *verifier) definitions(ctx context.Context, schema string) (faults []string, err error) {
	held, labels, err := v.describe(ctx, schema)
	if err != nil {
		return nil, err
	}
	if v.set.Method == spec.View {
		return differences(v.d0.Columns, held.Columns, "D0", "it"), nil
	}
	faults = append(differences(v.d0.Lines, held.Lines, "D0", "it"), differences(v.labels, labels, "D0", "it")...)
	for name, s := range v.d0.Sequences {
		if h, ok := held.Sequences[name]; ok && (h.Last != s.Last || h.Called != s.Called) {
			faults = append(faults, fmt.Sprintf("sequence %s is at another value than in D0", name))
		}
	}
	return faults, nil
}

// newKey returns the key of the one unit that a neighbour has and D0 does not; nil = none, or several.
func (v *verifier) newKey(ctx context.Context, schema string) ([]string, error) {
	found, err := connect.Values[[]string](ctx, v.Conn, fmt.Sprintf("SELECT ARRAY[%s] FROM (SELECT %[2]s FROM %[3]s EXCEPT SELECT %[2]s FROM %[4]s) k LIMIT 2",
		ident.Each(v.g.Key, "%[1]s::text", ", "), ident.List(v.g.Key), ident.Quote(schema, v.g.Unit.Name), ident.Quote(v.set.D0, v.g.Unit.Name)))
	if err != nil || len(found) != 1 {
		return nil, err
	}
	return found[0], nil
}

// describe reads the content of a schema of the set, and its security labels.
func (v *verifier) describe(ctx context.Context, schema string) (d *ddl.Description, found []string, err error) {
	err = pgx.BeginTxFunc(ctx, v.Conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if found, err = connect.Values[string](ctx, tx, labels, ident.Quote(schema)); err != nil {
			return err
		}
		slices.Sort(found)
		d, err = ddl.Describe(ctx, tx, schema)
		return err
	})
	return d, found, err
}

// differences lists the lines that are in only one of two sorted lists.
func differences(a, b []string, nameA, nameB string) []string {
	var out []string
	for _, side := range []struct {
		has, lacks       []string
		nameHas, nameNot string
	}{{a, b, nameA, nameB}, {b, a, nameB, nameA}} {
		for _, line := range side.has {
			if _, found := slices.BinarySearch(side.lacks, line); !found {
				out = append(out, side.nameHas+" has, and "+side.nameNot+" has not: "+line)
			}
		}
	}
	return out
}
