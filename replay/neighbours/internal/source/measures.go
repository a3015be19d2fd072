package source

import (
	"fmt"

	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// NumberCast returns the cast of a column to a number; only numbers have a largest value that noise is scaled to.
func NumberCast(c *Column) (cast string, err error) {
	switch c.Base {
	case 20, 21, 23, 700, 701, 1700: // int8, int2, int4, float4, float8, numeric
		return "", nil
	case 790: // money
		return "::numeric", nil
	}
	return "", fmt.Errorf("column %s of type %s is not a number", c.Name, c.Type)
}

// Measure returns the declared bounds of a column of r or of a table above r, or nil.
func (m *Model) Measure(measures []spec.Measure, r *Relation, name string) *spec.Measure {
	for i := range measures {
		x := &measures[i]
		if top := m.Named(x.Column.Table); top != nil && x.Column.Name == name && m.Within(r, top) {
			return x
		}
	}
	return nil
}

// CheckMeasures rejects bounds of columns that do not exist or are not numbers.
func CheckMeasures(m *Model, o *spec.Options) error {
	for i, x := range o.Measures {
		r := m.Named(x.Column.Table)
		if r == nil || !r.IsTable() || r.Column(x.Column.Name) == nil {
			return fmt.Errorf("neighbours.measures[%d]: %s is not a column of a protected table", i, x.Column)
		}
		if _, err := NumberCast(r.Column(x.Column.Name)); err != nil {
			return fmt.Errorf("neighbours.measures[%d]: %w", i, err)
		}
	}
	return nil
}
