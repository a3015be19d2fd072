package replay

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

const closeTimeout = 2 * time.Second

// reader turns the results of one session into outcomes. Outcomes share the description of their columns, which is
// never modified.
type reader struct {
	columns []outcome.Column
	oids    []uint32

	// of the current result
	cells    []outcome.Value // row by row
	rows     int
	bytes    int64
	tooLarge bool
	hash     uint64 // of all values, for a result that is too large
}

// read returns the outcome of one result, in text format. After a limit is exceeded it reads the remaining rows without
// keeping them, and the outcome is TooLarge, with the size and a hash of what was read.
func (r *reader) read(result *pgconn.ResultReader, maxRows int, maxBytes int64) (outcome.Outcome, error) {
	r.begin()
	fields := result.FieldDescriptions()
	r.describe(len(fields), func(i int) (string, uint32) { return fields[i].Name, fields[i].DataTypeOID })
	for result.NextRow() {
		if err := r.row(result.Values(), maxRows, maxBytes); err != nil {
			_, _ = result.Close()
			return outcome.Outcome{}, err
		}
	}
	if _, err := result.Close(); err != nil {
		return outcome.Outcome{}, err
	}
	return r.end(), nil
}

func (r *reader) begin() {
	r.cells, r.rows, r.bytes, r.tooLarge = r.cells[:0], 0, 0, false
	r.hash = 0
}

// row decodes one row. It does not keep values.
func (r *reader) row(values [][]byte, maxRows int, maxBytes int64) error {
	if len(values) != len(r.oids) {
		return fmt.Errorf("a row of %d values under %d columns", len(values), len(r.oids))
	}
	for i, v := range values {
		r.bytes += int64(len(v))
		x := decode(v, r.oids[i])
		r.hash = outcome.Mix(r.hash, x.Hash())
		if !r.tooLarge {
			r.cells = append(r.cells, x)
		}
	}
	r.rows++
	r.tooLarge = r.tooLarge || r.rows > maxRows || r.bytes > maxBytes
	return nil
}

// end returns the outcome of the rows since begin.
func (r *reader) end() outcome.Outcome {
	if r.tooLarge {
		r.cells = nil
		return outcome.Outcome{SQLState: TooLarge, Message: fmt.Sprintf("%d rows, %d bytes, %016x", r.rows, r.bytes, r.hash)}
	}
	o := outcome.Outcome{Columns: r.columns}
	if r.rows == 0 {
		return o
	}
	cells, width := slices.Clone(r.cells), len(r.columns)
	o.Rows = make([][]outcome.Value, r.rows)
	for i := range o.Rows {
		o.Rows[i] = cells[i*width : (i+1)*width : (i+1)*width]
	}
	return o
}

// describe sets the n columns of the result. It reuses those of the previous result if they are the same.
func (r *reader) describe(n int, column func(int) (name string, oid uint32)) {
	same := r.columns != nil && n == len(r.columns)
	for i := 0; same && i < n; i++ {
		name, oid := column(i)
		same = name == r.columns[i].Name && oid == r.oids[i]
	}
	if same {
		return
	}
	r.columns, r.oids = make([]outcome.Column, n), make([]uint32, n)
	for i := range n {
		name, oid := column(i)
		r.columns[i], r.oids[i] = outcome.Column{Name: name, Discrete: discrete(oid), Type: builtIn(oid)}, oid
	}
}

// builtIn returns the OID of a type that is the same on every server, 0 for others.
func builtIn(oid uint32) uint16 {
	const firstGenerated = 10_000
	if oid < firstGenerated {
		return uint16(oid)
	}
	return 0
}

// discrete reports whether a type holds no fractional noise, so that a column of it may be a group key.
func discrete(oid uint32) bool {
	switch oid {
	case pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID, 790 /* money */ :
		return false
	}
	return true
}

// decode decodes one value in text format: numbers with their text, booleans, NULL, and everything else as its text.
func decode(v []byte, oid uint32) outcome.Value {
	if v == nil {
		return outcome.Value{Kind: outcome.Null}
	}
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID, pgtype.OIDOID:
		text := string(v)
		if f, err := strconv.ParseFloat(text, 64); err == nil || errors.Is(err, strconv.ErrRange) {
			x := outcome.Value{Kind: outcome.Number, Num: f, Text: text}
			if oid == pgtype.NumericOID {
				x.Places = places(v)
			}
			return x
		}
	case pgtype.BoolOID:
		if len(v) == 1 && v[0] == 't' {
			return outcome.Value{Kind: outcome.Bool, Num: 1}
		}
		return outcome.Value{Kind: outcome.Bool}
	}
	return outcome.Value{Kind: outcome.Text, Text: string(v)}
}

// places returns Value.Places of a decimal.
func places(v []byte) uint16 {
	_, after, _ := bytes.Cut(v, []byte("."))
	return uint16(min(len(after), math.MaxUint16-1) + 1)
}
