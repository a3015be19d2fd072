package replay

import (
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

const closeTimeout = 2 * time.Second

// read takes one result, in text format. Past the caps it reads on without keeping, and the outcome is TooLarge.
func (p *Player) read(reader *pgconn.ResultReader) (outcome.Outcome, error) {
	fields := reader.FieldDescriptions()
	o := outcome.Outcome{Columns: make([]outcome.Column, len(fields))}
	oids := make([]uint32, len(fields))
	for i, f := range fields {
		o.Columns[i] = outcome.Column{Name: f.Name, Discrete: discrete(f.DataTypeOID)}
		oids[i] = f.DataTypeOID
	}
	var bytes int64
	for reader.NextRow() {
		values := reader.Values()
		for _, v := range values {
			bytes += int64(len(v))
		}
		if !o.Failed() && len(o.Rows) >= p.opt.MaxRows || bytes > p.opt.MaxBytes {
			o.SQLState = TooLarge
			o.Rows = nil
			continue
		}
		if o.Failed() {
			continue
		}
		row := make([]outcome.Value, len(values))
		for i, v := range values {
			row[i] = decode(v, oids[i])
		}
		o.Rows = append(o.Rows, row)
	}
	if _, err := reader.Close(); err != nil {
		return outcome.Outcome{}, err
	}
	if o.Failed() {
		o.Columns = nil
	}
	return o, nil
}

// discrete reports whether a type holds no fractional noise, so that a column of it may be a group key.
func discrete(oid uint32) bool {
	switch oid {
	case pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID, 790 /* money */ :
		return false
	}
	return true
}

// decode reads one value in text format: numbers as float64, booleans, NULL, and everything else as its text.
func decode(v []byte, oid uint32) outcome.Value {
	if v == nil {
		return outcome.Value{Kind: outcome.Null}
	}
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID, pgtype.OIDOID:
		if f, err := strconv.ParseFloat(string(v), 64); err == nil {
			return outcome.Value{Kind: outcome.Number, Num: f}
		}
	case pgtype.BoolOID:
		if len(v) == 1 && v[0] == 't' {
			return outcome.Value{Kind: outcome.Bool, Num: 1}
		}
		return outcome.Value{Kind: outcome.Bool}
	}
	return outcome.Value{Kind: outcome.Text, Text: string(v)}
}
