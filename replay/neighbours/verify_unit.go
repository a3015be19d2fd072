package neighbours

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// unitFaults compares the unit's own rows in D0 and in a neighbour: for a replaced unit only its measures may have moved,
// and an added unit must have the rows of its template except for new keys and measures, which are at their upper bounds.
// Together with the checksums of all other rows, the pair then differs only by this unit.
func (v *verifier) unitFaults(d0, d1 *worldSums, number int) ([]string, error) {
	var faults []string
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	before, after := map[string]checksum{}, map[string]checksum{} // by topmost table: a new key may be in another partition
	for _, r := range v.m.tables() {
		if !r.stores() {
			continue
		}
		switch v.set.Relation {
		case Replace:
			if d0.same[number][r.Name] != d1.same[number][r.Name] {
				add("table %s: the unit's rows differ in more than its measures (%d in D0, %d here)", r.Name, d0.units[number][r.Name].Rows, d1.units[number][r.Name].Rows)
			}
		case Extreme:
			top := v.m.top(r).Name
			for sum, of := range map[*map[string]checksum]*worldSums{&before: d0, &after: d1} {
				so, ok := (*sum)[top]
				if !ok {
					so = checksum{0, "0", "0"}
				}
				var err error
				if (*sum)[top], err = so.plus(of.same[number][r.Name]); err != nil {
					return nil, err
				}
			}
			if n := d1.off[number][r.Name]; n > 0 {
				add("table %s: %d rows of the added unit have measures that are not at their upper bounds", r.Name, n)
			}
		case Remove:
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
	return faults, nil
}

// measure returns the declared bounds of a column in a schema of copies.
func (v *verifier) measure(r *relation, name string) *Measure {
	measures := slices.Clone(v.o.Measures)
	for i := range measures {
		measures[i].Column.Table.Schema = v.set.D0
	}
	return v.m.measure(measures, r, name)
}

// unmeasured returns an expression for a row of t as text, without measures, generated columns and the new values of an
// added unit. Columns of partitions are in the order of the topmost table.
func (v *verifier) unmeasured(r *relation) string {
	var columns []string
	top, order := v.m.top(r), r
	if top.kind == 'p' {
		order = top
	}
	for _, name := range order.stored() {
		renewed := false
		if v.fresh != nil {
			_, renewed = v.fresh.from[place{top: top, name: name}]
		}
		if v.measure(r, name) == nil && !renewed {
			columns = append(columns, "t."+ident.Quote(name))
		}
	}
	return "ROW(" + strings.Join(columns, ", ") + ")::text"
}

// offBounds returns a condition that is true for a row of t with a measure that is not at its upper bound.
func (v *verifier) offBounds(r *relation) string {
	condition := "false"
	for _, c := range r.live() {
		if m := v.measure(r, c.name); m != nil {
			condition += fmt.Sprintf(" OR t.%s IS DISTINCT FROM %s::%s", ident.Quote(c.name), ident.Literal(m.High), c.typ)
		}
	}
	return condition
}
