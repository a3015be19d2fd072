package generate

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Generate returns the tables of a specification that Parse returned, in its order. Equal seeds give equal rows.
func (s Spec) Generate(seed uint64) (all []Table) {
	for _, t := range s.Tables {
		table := Table{Name: t.Name, Rows: s.rows(t, seed)}
		for _, c := range t.Columns {
			table.Columns = append(table.Columns, Column{Name: c.Name, SQL: s.sql(c)})
		}
		all = append(all, table)
	}
	return all
}

func (s Spec) table(name string) *TableSpec {
	return &s.Tables[slices.IndexFunc(s.Tables, func(t TableSpec) bool { return t.Name == name })]
}

func (s Spec) sql(c ColumnSpec) string {
	switch c.Kind {
	case "key":
		return "bigint primary key"
	case "integer", "zipf":
		return "bigint"
	case "reference":
		return "bigint references " + ident.Quote(*c.Table) + " (" + ident.Quote(s.table(*c.Table).key().Name) + ")"
	case "text", "date":
		return c.Kind
	}
	return "double precision"
}

func (s Spec) rows(t TableSpec, seed uint64) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		draws := make([]func() any, len(t.Columns))
		for i, c := range t.Columns {
			draws[i] = s.cells(c, t.Rows, stream(seed, t.Name, c.Name))
		}
		row := make([]any, len(draws))
		for range t.Rows {
			for i, draw := range draws {
				row[i] = draw()
			}
			if !yield(row) {
				return
			}
		}
	}
}

// stream returns the random numbers of a column.
func stream(seed uint64, table, column string) *rand.Rand {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(table+"\x00"+column+"\x00"), seed))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:]))) // #nosec G404 -- reproducible by design
}

// cells returns the draws of a column with its outliers and NULLs.
func (s Spec) cells(c ColumnSpec, rows int64, rng *rand.Rand) func() any {
	draw := s.law(c, rows, rng)
	if c.Outliers == nil && c.Nulls == nil {
		return draw
	}
	return func() any {
		cell := draw()
		if o := c.Outliers; o != nil && rng.Float64() < o.Share {
			if cell = o.Value; c.Kind == "integer" || c.Kind == "zipf" {
				cell = int64(o.Value)
			}
		}
		if c.Nulls != nil && rng.Float64() < *c.Nulls {
			cell = nil
		}
		return cell
	}
}

func (s Spec) law(c ColumnSpec, rows int64, rng *rand.Rand) func() any {
	switch c.Kind {
	case "key":
		next := c.start() - 1
		return func() any { next++; return next }
	case "reference":
		return s.reference(c, rows, rng)
	case "integer":
		low, n := int64(*c.Min), uint64(int64(*c.Max)-int64(*c.Min))+1 // #nosec G115 -- min is not above max
		return func() any { return low + int64(rng.Uint64N(n)) }       // #nosec G115 -- at most 2^54
	case "float":
		low, span := *c.Min, *c.Max-*c.Min
		below := math.Nextafter(*c.Max, low) // the product can be rounded up to max
		return func() any { return round(min(low+span*rng.Float64(), below), c.Decimals) }
	case "normal":
		return func() any { return round(*c.Mean+*c.SD*rng.NormFloat64(), c.Decimals) }
	case "zipf":
		last := uint64(*c.Max) - 1
		rank := rand.NewZipf(rng, *c.Exponent, 1, last)
		return func() any { return 1 + int64(min(rank.Uint64(), last)) } // #nosec G115 -- at most 2^53
	case "date":
		from, _ := time.Parse(time.DateOnly, *c.From) // Parse checked both
		to, _ := time.Parse(time.DateOnly, *c.To)
		days := int((to.Unix()-from.Unix())/(24*60*60)) + 1
		return func() any { return from.AddDate(0, 0, rng.IntN(days)).Format(time.DateOnly) }
	}
	return texts(c, rng)
}

// texts draws from the list of values.
func texts(c ColumnSpec, rng *rand.Rand) func() any {
	if c.Weights == nil {
		return func() any { return *c.Values[rng.IntN(len(c.Values))] }
	}
	sums := make([]float64, len(c.Weights))
	total, last := 0.0, 0
	for i, w := range c.Weights {
		total += w
		sums[i] = total
		if w > 0 {
			last = i
		}
	}
	return func() any {
		i, _ := slices.BinarySearchFunc(sums, rng.Float64()*total, func(sum, x float64) int {
			if sum <= x {
				return -1
			}
			return 1
		})
		return *c.Values[min(i, last)] // the product can be rounded up to total
	}
}

// reference draws keys of another table. The heavy unit's rows are a uniform random choice of its number of rows.
func (s Spec) reference(c ColumnSpec, rows int64, rng *rand.Rand) func() any {
	target := s.table(*c.Table)
	start, n := target.key().start(), target.Rows
	heavy, left := int64(-1), int64(0)
	if c.Heavy != nil {
		heavy, left = int64(c.Heavy.index(start)), c.Heavy.Rows
		n = max(n-1, 1)
	}
	other := func() int64 { return rng.Int64N(n) }
	if c.Exponent != nil {
		rank := rand.NewZipf(rng, *c.Exponent, 1, uint64(n)-1)                 // #nosec G115 -- n is at least 1
		other = func() int64 { return int64(min(rank.Uint64(), uint64(n)-1)) } // #nosec G115 -- at most n
	}
	remaining := rows
	return func() any {
		take := left > 0 && rng.Int64N(remaining) < left
		if remaining--; take {
			left--
			return start + heavy
		}
		i := other()
		if heavy >= 0 && i >= heavy {
			i++
		}
		return start + i
	}
}

// round rounds to a number of decimals; nil = not at all.
func round(x float64, decimals *int) float64 {
	if decimals == nil {
		return x
	}
	unit := math.Pow10(*decimals)
	if rounded := math.Round(x*unit) / unit; finite(rounded) {
		return rounded
	}
	return x
}

// names lists the names of a table's columns.
func (t Table) names() string {
	all := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		all[i] = c.Name
	}
	return strings.Join(all, ",")
}
