package verify

import (
	"fmt"
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// unitFaults compares the unit's own rows in D0 and in a neighbour: for a replaced unit only its measures may have
// moved, and an added unit must have the rows of its template except for new keys and measures, which are at their
// upper bounds. Together with the checksums of all other rows, the pair then differs only by this unit.
func (v *verifier) unitFaults(d0, d1 *worldSums, number int) []string {
	var faults []string
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	before, after := map[string]checksum{}, map[string]checksum{} // by topmost table: a new key may be in another partition
	for _, r := range v.m.Tables() {
		if !r.Stores() {
			continue
		}
		u0, u1 := d0.units[unitTable{number, r.Name}], d1.units[unitTable{number, r.Name}]
		switch v.set.Relation {
		case spec.Replace:
			if u0.same != u1.same {
				add("table %s: the unit's rows differ in more than its measures (%d in D0, %d here)", r.Name, u0.rows.Rows, u1.rows.Rows)
			}
		case spec.Extreme:
			top := v.m.Top(r).Name
			before[top], after[top] = before[top].plus(u0.same), after[top].plus(u1.same)
			if u1.off > 0 {
				add("table %s: %d rows of the added unit have measures that are not at their upper bounds", r.Name, u1.off)
			}
		case spec.Remove:
		}
	}
	for top, made := range before {
		switch {
		case after[top].Rows != made.Rows:
			add("table %s: the added unit has %d rows, and the one that it was made from has %d", top, after[top].Rows, made.Rows)
		case after[top] != made:
			add("table %s: the added unit's rows differ from those that they were made from in more than keys and measures", top)
		}
	}
	slices.Sort(faults)
	return faults
}

// measure returns the declared bounds of a column in a schema of copies.
func (v *verifier) measure(r *source.Relation, name string) *spec.Measure {
	measures := slices.Clone(v.Options.Measures)
	for i := range measures {
		measures[i].Column.Table.Schema = v.set.D0
	}
	return v.m.Measure(measures, r, name)
}

// unmeasured returns an expression for a row of t as text, without measures, generated columns and the new values of an
// added unit. Columns of partitions are in the order of the topmost table.
func (v *verifier) unmeasured(r *source.Relation) string {
	var columns []string
	top, order := v.m.Top(r), r
	if top.Kind == catalog.KindPartitioned {
		order = top
	}
	for _, name := range order.Stored() {
		renewed := false
		if v.fresh != nil {
			_, renewed = v.fresh.From[source.Place{Top: top, Name: name}]
		}
		if v.measure(r, name) == nil && !renewed {
			columns = append(columns, name)
		}
	}
	return "ROW(" + ident.Each(columns, "t.%[1]s", ", ") + ")::text"
}

// offBounds returns a condition that is true for a row of t with a measure that is not at its upper bound.
func (v *verifier) offBounds(r *source.Relation) string {
	condition := "false"
	for _, c := range r.Live() {
		if m := v.measure(r, c.Name); m != nil {
			condition += fmt.Sprintf(" OR t.%s IS DISTINCT FROM %s::%s", ident.Quote(c.Name), ident.Literal(m.High), c.Type)
		}
	}
	return condition
}
