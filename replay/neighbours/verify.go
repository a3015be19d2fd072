package neighbours

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Difference is the result of Verify for D0 and one neighbour.
type Difference struct {
	Schema  string
	Unit    string           // the pseudonym
	Removed map[string]int64 // rows of the unit in D0, by table
	Added   map[string]int64 // rows of the unit in the neighbour, by table
	Faults  []string         // empty = the pair differs by exactly this unit
}

// Report is the result of Verify.
type Report struct {
	Set    Set
	Pairs  []Difference
	Faults []string // of D0 itself, and its differences from the source; empty = none
	// NotCompared is why D0 was not compared with the source; empty = it was.
	NotCompared string
}

// OK reports whether no faults were found in what was compared.
func (r *Report) OK() bool {
	return len(r.Faults) == 0 && !slices.ContainsFunc(r.Pairs, func(d Difference) bool { return len(d.Faults) > 0 })
}

// Verify checks for every pair of the current set that it differs by exactly one unit, and that no other rows differ. It
// computes checksums of the present rows, per table, of the unit's rows and of all others; it takes only the unit's
// identity from the records. It also compares the schemas, as far as plans, results and rights depend on them: D0 with what
// create would make of the source's present definitions, if the source can be reached, and every neighbour with D0. The
// server does the work; it reads every table of every schema once. Rows are not compared with the source's, which change.
func Verify(ctx context.Context, o Options) (Report, error) {
	s, err := openShadow(ctx, &o, false)
	if err != nil {
		return Report{}, err
	}
	defer s.close(ctx)
	set, err := s.current(ctx)
	report := Report{Set: set}
	if err != nil {
		return report, err
	}
	members, err := s.members(ctx, set)
	if err != nil {
		return report, explain(err)
	}
	for _, schema := range append([]string{set.D0}, set.D1...) {
		if err := s.complete(ctx, schema, set.Tables); err != nil {
			return report, err
		}
	}
	v := &verifier{shadow: s, set: set, worlds: map[string]*worldSums{}}
	if err := v.readD0(ctx, members); err != nil {
		return report, fmt.Errorf("verify d0: %w", explain(err))
	}
	if report.Faults, err = v.condition(ctx, set.D0, v.worlds[set.D0]); err != nil {
		return report, fmt.Errorf("verify d0: %w", explain(err))
	}
	faults, unread, err := v.compareSource(ctx)
	if err != nil {
		return report, fmt.Errorf("compare d0 with the source: %w", explain(err))
	}
	report.Faults = append(report.Faults, faults...)
	if unread != nil {
		report.NotCompared = unread.Error()
	}
	for i, m := range members {
		d, err := v.compare(ctx, i+1, m)
		if err != nil {
			return report, fmt.Errorf("verify %s: %w", m.Schema, explain(err))
		}
		o.progress("verify "+m.Schema, int64(i+1), int64(len(members)))
		report.Pairs = append(report.Pairs, d)
	}
	return report, nil
}

// complete rejects a schema that lacks a relation of the set.
func (s *shadow) complete(ctx context.Context, schema string, tables []string) error {
	rows, err := s.conn.Query(ctx, `SELECT t FROM unnest($1::text[]) t WHERE to_regclass(format('%I.%I', $2::text, t)) IS NULL`, tables, schema)
	if err != nil {
		return err
	}
	lost, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		return fmt.Errorf("schema %s has lost %s: run `dpwatch neighbours refresh`", schema, strings.Join(lost, ", "))
	}
	return nil
}

type verifier struct {
	*shadow
	set    Set
	m      *model // of D0, with the configured paths
	g      *graph
	fresh  *fresh // the columns with new values in an added unit; nil for other relations
	worlds map[string]*worldSums
	d0     *description
	labels []string // the security labels of D0
}

// readD0 reads D0's present catalog and its checksums for every unit.
func (v *verifier) readD0(ctx context.Context, members []Member) error {
	var err error
	if v.m, v.g, err = v.readWorld(ctx, v.set.D0); err != nil {
		return err
	}
	if v.d0, v.labels, err = v.describe(ctx, v.set.D0); err != nil {
		return err
	}
	if v.set.Relation == Extreme {
		if v.fresh, err = v.g.fresh(); err != nil {
			return err
		}
	}
	keys := map[int][]string{}
	for i, m := range members {
		keys[i+1] = m.Key
	}
	v.worlds[v.set.D0], err = v.sums(ctx, v.set.D0, keys)
	return err
}

// readWorld reads the model of a schema of copies, and how its rows belong to units.
func (v *verifier) readWorld(ctx context.Context, schema string) (*model, *graph, error) {
	o := *v.o
	o.Note = nil
	o.Protected, o.Paths = nil, nil
	o.Unit.Table.Schema = schema
	for _, t := range v.o.Protected {
		o.Protected = append(o.Protected, Table{Schema: schema, Name: t.Name})
	}
	for _, p := range v.o.Paths {
		p.Table.Schema, p.To.Schema = schema, schema
		o.Paths = append(o.Paths, p)
	}
	var m *model
	err := pgx.BeginTxFunc(ctx, v.conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		if _, err = tx.Exec(ctx, "SET LOCAL search_path TO pg_catalog"); err != nil {
			return err
		}
		m, err = readModel(ctx, tx, &o, false)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	g, err := newGraph(m, &o)
	return m, g, err
}

// compare verifies one pair and returns its faults.
func (v *verifier) compare(ctx context.Context, number int, m Member) (Difference, error) {
	d := Difference{Schema: m.Schema, Unit: m.Unit, Removed: map[string]int64{}, Added: map[string]int64{}}
	held, labels, err := v.describe(ctx, m.Schema)
	if err != nil {
		return d, err
	}
	if v.set.Method == View {
		d.Faults = differences(v.d0.columns, held.columns, "D0", "it")
	} else {
		d.Faults = append(differences(v.d0.lines, held.lines, "D0", "it"), differences(v.labels, labels, "D0", "it")...)
		for name, s := range v.d0.values {
			if h, ok := held.values[name]; ok && (h.last != s.last || h.called != s.called) {
				d.Faults = append(d.Faults, fmt.Sprintf("sequence %s is at another value than in D0", name))
			}
		}
	}
	d0 := v.worlds[v.set.D0]
	key := m.Key
	if v.set.Relation == Extreme {
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
	for _, find := range []func() ([]string, error){
		func() ([]string, error) { return v.condition(ctx, m.Schema, d1) },
		func() ([]string, error) { return v.unitFaults(d0, d1, number) },
	} {
		faults, err := find()
		if err != nil {
			return d, err
		}
		d.Faults = append(d.Faults, faults...)
	}
	differs := false
	for _, r := range v.m.tables() {
		if !r.stores() {
			if own, view := d1.all[r.Name]; view && own != (checksum{0, "0", "0"}) {
				d.Faults = append(d.Faults, fmt.Sprintf("table %s: its view has other rows than those of its partitions", r.Name))
			}
			continue
		}
		before, after := d0.units[number][r.Name], d1.units[number][r.Name]
		if v.set.Relation == Extreme {
			before = checksum{0, "0", "0"} // the added unit is not in D0
		}
		rest0, err := d0.all[r.Name].minus(before)
		if err != nil {
			return d, err
		}
		rest1, err := d1.all[r.Name].minus(after)
		if err != nil {
			return d, err
		}
		if rest0 != rest1 {
			d.Faults = append(d.Faults, fmt.Sprintf("table %s: rows of other units differ (%d in D0, %d here)", r.Name, rest0.Rows, rest1.Rows))
		}
		if before != after {
			differs = true
		}
		if v.set.Relation == Remove && after.Rows > 0 {
			d.Faults = append(d.Faults, fmt.Sprintf("table %s: %d rows of the unit are still there", r.Name, after.Rows))
		}
		if before.Rows > 0 {
			d.Removed[r.Name] = before.Rows
		}
		if after.Rows > 0 {
			d.Added[r.Name] = after.Rows
		}
	}
	if !differs {
		d.Faults = append(d.Faults, "no row differs: it is D0 itself")
	}
	return d, nil
}

// newKey returns the key of the one unit that a neighbour has and D0 does not; nil = none, or several.
func (v *verifier) newKey(ctx context.Context, schema string) ([]string, error) {
	var keys, texts []string
	for _, k := range v.g.key {
		keys, texts = append(keys, ident.Quote(k)), append(texts, ident.Quote(k)+"::text")
	}
	list := strings.Join(keys, ", ")
	rows, err := v.conn.Query(ctx, fmt.Sprintf("SELECT ARRAY[%s] FROM (SELECT %s FROM %s EXCEPT SELECT %s FROM %s) k LIMIT 2", strings.Join(texts, ", "),
		list, ident.Quote(schema, v.g.unit.Name), list, ident.Quote(v.set.D0, v.g.unit.Name)))
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
	if err != nil || len(found) != 1 {
		return nil, err
	}
	return found[0], nil
}

// describe reads the content of a schema of the set, and its security labels.
func (v *verifier) describe(ctx context.Context, schema string) (d *description, found []string, err error) {
	err = pgx.BeginTxFunc(ctx, v.conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if found, err = texts(ctx, tx, labels, ident.Quote(schema)); err != nil {
			return err
		}
		slices.Sort(found)
		d, err = describe(ctx, tx, schema)
		return err
	})
	return d, found, err
}

// differences lists the lines that are in only one of two sorted lists.
func differences(a, b []string, nameA, nameB string) []string {
	var out []string
	for _, line := range a {
		if _, found := slices.BinarySearch(b, line); !found {
			out = append(out, nameA+" has, and "+nameB+" has not: "+line)
		}
	}
	for _, line := range b {
		if _, found := slices.BinarySearch(a, line); !found {
			out = append(out, nameB+" has, and "+nameA+" has not: "+line)
		}
	}
	return out
}
