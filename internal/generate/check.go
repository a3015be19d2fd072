package generate

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a specification.
const (
	maxTables  = 100
	maxColumns = 500 // of a table
	maxRows    = 1_000_000_000
	maxWhole   = 1 << 53 // integers up to here are exact in a float64
	// minExponent is the least exponent of Zipf's law: rand.Zipf loses its precision near 1.
	minExponent = 1.001
)

// identifier is a name that is also a file name and fits PostgreSQL's limit.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// parameters are the keys that each kind of column takes; required ones come before the semicolon.
var parameters = map[string]string{
	"key":       "; start",
	"reference": "table; heavy exponent nulls",
	"integer":   "min max; nulls outliers",
	"float":     "min max; decimals nulls outliers",
	"normal":    "mean sd; decimals nulls outliers",
	"zipf":      "exponent max; nulls outliers",
	"text":      "values; weights nulls",
	"date":      "from to; nulls",
}

func (c *ColumnSpec) given() (names []string) {
	for _, p := range []struct {
		name string
		set  bool
	}{
		{"start", c.Start != nil},
		{"table", c.Table != nil},
		{"heavy", c.Heavy != nil},
		{"min", c.Min != nil},
		{"max", c.Max != nil},
		{"mean", c.Mean != nil},
		{"sd", c.SD != nil},
		{"exponent", c.Exponent != nil},
		{"decimals", c.Decimals != nil},
		{"values", c.Values != nil},
		{"weights", c.Weights != nil},
		{"from", c.From != nil},
		{"to", c.To != nil},
		{"nulls", c.Nulls != nil},
		{"outliers", c.Outliers != nil},
	} {
		if p.set {
			names = append(names, p.name)
		}
	}
	return names
}

// check returns all errors of a specification.
func (s Spec) check() error {
	var all []error
	if n := len(s.Tables); n == 0 || n > maxTables {
		return fmt.Errorf("tables: %d tables: give 1 to %d", n, maxTables)
	}
	for i, t := range s.Tables {
		where := fmt.Sprintf("tables[%d] (%s)", i, t.Name)
		if !identifier.MatchString(t.Name) {
			all = append(all, fmt.Errorf("tables[%d].name: %q is no name: use letters, digits and _, at most 63", i, t.Name))
		}
		if slices.ContainsFunc(s.Tables[:i], func(o TableSpec) bool { return o.Name == t.Name }) {
			all = append(all, fmt.Errorf("%s: two tables have this name", where))
		}
		if t.Rows < 1 || t.Rows > maxRows {
			all = append(all, fmt.Errorf("%s.rows: %d: must be from 1 to %d", where, t.Rows, maxRows))
		}
		if n := len(t.Columns); n == 0 || n > maxColumns {
			all = append(all, fmt.Errorf("%s.columns: %d columns: give 1 to %d", where, n, maxColumns))
			continue
		}
		keys := 0
		for j, c := range t.Columns {
			at := fmt.Sprintf("%s.columns[%d] (%s)", where, j, c.Name)
			if !identifier.MatchString(c.Name) {
				all = append(all, fmt.Errorf("%s.columns[%d].name: %q is no name: use letters, digits and _, at most 63", where, j, c.Name))
			}
			if slices.ContainsFunc(t.Columns[:j], func(o ColumnSpec) bool { return o.Name == c.Name }) {
				all = append(all, fmt.Errorf("%s: two columns have this name", at))
			}
			if c.Kind == "key" {
				keys++
			}
			if err := c.check(t.Rows, s.Tables[:i]); err != nil {
				all = append(all, fmt.Errorf("%s: %w", at, err))
			}
		}
		if keys > 1 {
			all = append(all, fmt.Errorf("%s: %d columns of the kind key: a table has one at most", where, keys))
		}
	}
	return errors.Join(all...)
}

// check returns the first error of a column of a table with rows rows after the earlier tables.
func (c *ColumnSpec) check(rows int64, earlier []TableSpec) error {
	list, ok := parameters[c.Kind]
	if !ok {
		return fmt.Errorf("kind %q: must be key, reference, integer, float, normal, zipf, text or date", c.Kind)
	}
	first, rest, _ := strings.Cut(list, ";")
	required, given := strings.Fields(first), c.given()
	for _, name := range required {
		if !slices.Contains(given, name) {
			return fmt.Errorf("%s is missing: kind %s needs it", name, c.Kind)
		}
	}
	for _, name := range given {
		if !slices.Contains(append(strings.Fields(rest), required...), name) {
			return fmt.Errorf("%s does not apply to kind %s: remove it", name, c.Kind)
		}
	}
	if c.Nulls != nil && !(*c.Nulls >= 0 && *c.Nulls <= 1) {
		return fmt.Errorf("nulls %v: must be from 0 to 1", *c.Nulls)
	}
	if o := c.Outliers; o != nil && (!(o.Share >= 0 && o.Share <= 1) || !finite(o.Value)) {
		return errors.New("outliers: share must be from 0 to 1, and value a finite number")
	} else if o != nil && (c.Kind == "integer" || c.Kind == "zipf") && !whole(o.Value) {
		return fmt.Errorf("outliers: value %v: must be a whole number in a column of the kind %s", o.Value, c.Kind)
	}
	if c.Decimals != nil && (*c.Decimals < 0 || *c.Decimals > 15) {
		return fmt.Errorf("decimals %d: must be from 0 to 15", *c.Decimals)
	}
	return c.checkLaw(rows, earlier)
}

func (c *ColumnSpec) checkLaw(rows int64, earlier []TableSpec) error {
	if c.Exponent != nil && !(*c.Exponent >= minExponent && *c.Exponent <= 100) {
		return fmt.Errorf("exponent %v: must be from %v to 100", *c.Exponent, minExponent)
	}
	switch c.Kind {
	case "key":
		if c.Start != nil && !(whole(*c.Start) && math.Abs(*c.Start) <= 1<<52) {
			return fmt.Errorf("start %v: must be a whole number up to 2^52", *c.Start)
		}
	case "reference":
		return c.checkReference(rows, earlier)
	case "integer":
		if !whole(*c.Min) || !whole(*c.Max) || *c.Min > *c.Max {
			return fmt.Errorf("min %v, max %v: must be whole numbers up to 2^53, min not above max", *c.Min, *c.Max)
		}
	case "float":
		if !finite(*c.Min) || !finite(*c.Max) || !finite(*c.Max-*c.Min) || *c.Min >= *c.Max {
			return fmt.Errorf("min %v, max %v: must be finite numbers, min below max", *c.Min, *c.Max)
		}
	case "normal":
		if !(math.Abs(*c.Mean) <= 1e300) || !(*c.SD >= 0 && *c.SD <= 1e300) {
			return fmt.Errorf("mean %v, sd %v: must be numbers up to 1e300, sd not negative", *c.Mean, *c.SD)
		}
	case "zipf":
		if !whole(*c.Max) || *c.Max < 1 {
			return fmt.Errorf("max %v: must be a whole number from 1 to 2^53", *c.Max)
		}
	case "text":
		return c.checkTexts()
	case "date":
		from, err := time.Parse(time.DateOnly, *c.From)
		to, err2 := time.Parse(time.DateOnly, *c.To)
		if err != nil || err2 != nil || to.Before(from) {
			return fmt.Errorf("from %q, to %q: must be dates such as 2024-12-31, from not after to", *c.From, *c.To)
		}
	}
	return nil
}

func (c *ColumnSpec) checkReference(rows int64, earlier []TableSpec) error {
	i := slices.IndexFunc(earlier, func(t TableSpec) bool { return t.Name == *c.Table })
	if i < 0 {
		return fmt.Errorf("table %q: no earlier table has this name: list a table before those that refer to it", *c.Table)
	}
	target := earlier[i]
	key := target.key()
	if key == nil {
		return fmt.Errorf("table %q: has no column of the kind key", *c.Table)
	}
	h := c.Heavy
	if h == nil {
		return nil
	}
	if h.Rows < 1 || h.Rows > rows {
		return fmt.Errorf("heavy: rows %d: must be from 1 to the %d rows of the table", h.Rows, rows)
	}
	if target.Rows == 1 && h.Rows < rows {
		return fmt.Errorf("heavy: table %q has one row, so that the other %d rows have no key", *c.Table, rows-h.Rows)
	}
	if n := h.index(key.start()); !(n >= 0 && n < float64(target.Rows) && n == math.Trunc(n)) {
		return fmt.Errorf("heavy: key %v: table %q has the keys %d to %d", *h.Key, *c.Table, key.start(), key.start()+target.Rows-1)
	}
	return nil
}

func (c *ColumnSpec) checkTexts() error {
	if len(c.Values) == 0 {
		return errors.New("values: give at least one")
	}
	for i, v := range c.Values {
		if v == nil {
			return fmt.Errorf("values[%d]: is null: write nulls, the share of NULLs, or the word in quotes", i)
		}
		if !utf8.ValidString(*v) || strings.ContainsRune(*v, 0) {
			return fmt.Errorf("values[%d]: must be UTF-8 without the NUL character", i)
		}
	}
	if c.Weights == nil {
		return nil
	}
	sum := 0.0
	for i, w := range c.Weights {
		if !(w >= 0) {
			return fmt.Errorf("weights[%d]: %v: must not be negative", i, w)
		}
		sum += w
	}
	if len(c.Weights) != len(c.Values) || !(sum > 0) || !finite(sum) {
		return fmt.Errorf("weights: %d weights with the sum %v for %d values: give one for each value, with a positive sum", len(c.Weights), sum, len(c.Values))
	}
	return nil
}

// key returns the column with the key, or nil.
func (t *TableSpec) key() *ColumnSpec {
	for i := range t.Columns {
		if t.Columns[i].Kind == "key" {
			return &t.Columns[i]
		}
	}
	return nil
}

// start returns the first key of a column of the kind key.
func (c *ColumnSpec) start() int64 {
	if c.Start == nil || !whole(*c.Start) {
		return 0
	}
	return int64(*c.Start)
}

// index returns the position of the heavy unit's key in its table, from 0.
func (h *Heavy) index(start int64) float64 {
	if h.Key == nil {
		return 0
	}
	return *h.Key - float64(start)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func whole(x float64) bool { return math.Abs(x) <= maxWhole && x == math.Trunc(x) }
