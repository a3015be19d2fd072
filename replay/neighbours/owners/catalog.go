package owners

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// table is a table, with its partitions and children.
type table struct {
	ident.Table
	Rows     float64 // the planner's estimate; negative = not known
	Readable bool
	Empty    bool // it has no pages
	columns  []column
	refers   []reference
}

// column is a column of a table. Base is the name of its type without domains, of the elements for an array.
type column struct {
	Name, Type, Base string
	Array            bool
	Key              bool // the primary key alone
	Unique           bool // a unique index on it alone
	Width            int  // the mean width in bytes by the planner's statistics; 0 = not known
}

// reference is a foreign key.
type reference struct {
	Columns []string
	To      ident.Table
	On      []string
}

// The families of types whose values are compared with each other.
var families = map[string]string{
	"int2": "number", "int4": "number", "int8": "number", "numeric": "number", "uuid": "uuid", "text": "text", "varchar": "text", "bpchar": "text", "citext": "text", "name": "text",
	"json": "json", "jsonb": "json",
}

func (c column) family() string { return families[c.Base] }

func (t *table) column(name string) *column {
	if i := slices.IndexFunc(t.columns, func(c column) bool { return c.Name == name }); i >= 0 {
		return &t.columns[i]
	}
	return nil
}

// references reports whether a foreign key has the column.
func (t *table) references(name string) bool {
	return slices.ContainsFunc(t.refers, func(r reference) bool { return slices.Contains(r.Columns, name) })
}

const ours = `n.nspname NOT LIKE 'pg\_%' AND n.nspname NOT LIKE 'dpwatch%' AND n.nspname <> 'information_schema'`

// columnsQuery lists the columns of the tables with the schemas $1 and the names $2, and if $3 is true of all others that
// are no partitions or children.
const columnsQuery = `SELECT n.nspname, c.relname, (SELECT CASE WHEN c.relkind = 'p' THEN coalesce(sum(greatest(p.reltuples, 0)), 0) ELSE c.reltuples END
		FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class p ON p.oid = i.inhrelid WHERE i.inhparent = c.oid)::float8,
	pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT') AND NOT pg_catalog.row_security_active(c.oid),
	c.relkind = 'r' AND pg_catalog.pg_relation_size(c.oid) = 0 AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid),
	a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (WITH RECURSIVE b (oid) AS (SELECT a.atttypid UNION
			SELECT CASE WHEN t.typbasetype <> 0 THEN t.typbasetype ELSE t.typelem END FROM b JOIN pg_catalog.pg_type t ON t.oid = b.oid
			WHERE t.typbasetype <> 0 OR t.typelem <> 0 AND t.typcategory = 'A')
		SELECT t.typname FROM b JOIN pg_catalog.pg_type t ON t.oid = b.oid WHERE t.typbasetype = 0 AND NOT (t.typelem <> 0 AND t.typcategory = 'A'))::text,
	y.typcategory = 'A',
	EXISTS (SELECT FROM pg_catalog.pg_index x WHERE x.indrelid = c.oid AND x.indisprimary AND x.indnkeyatts = 1 AND x.indkey[0] = a.attnum),
	EXISTS (SELECT FROM pg_catalog.pg_index x WHERE x.indrelid = c.oid AND x.indisunique AND x.indpred IS NULL AND x.indnkeyatts = 1 AND x.indkey[0] = a.attnum),
	coalesce((SELECT max(s.avg_width) FROM pg_catalog.pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname), 0)
	FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	JOIN pg_catalog.pg_type y ON y.oid = a.atttypid
	WHERE c.relkind IN ('r', 'p') AND ($3 AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid) AND ` + ours + `
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
		OR (n.nspname, c.relname) IN (SELECT * FROM unnest($1::text[], $2::text[])))
	ORDER BY 1, 2, a.attnum`

const referencesQuery = `SELECT n.nspname, c.relname, tn.nspname, t.relname,
	(SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(f.conkey) WITH ORDINALITY k (number, place) JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number),
	(SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(f.confkey) WITH ORDINALITY k (number, place) JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number)
	FROM pg_catalog.pg_constraint f JOIN pg_catalog.pg_class c ON c.oid = f.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	JOIN pg_catalog.pg_class t ON t.oid = f.confrelid JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
	WHERE f.contype = 'f' AND f.conparentid = 0 ORDER BY 1, 2, f.conname`

// read reads the tables.
func (s *search) read(ctx context.Context) error {
	schemas, names := []string{s.o.Unit.Schema}, []string{s.o.Unit.Name}
	for _, t := range slices.Concat(s.o.Tables, s.o.Only) {
		schemas, names = append(schemas, t.Schema), append(names, t.Name)
	}
	columns, err := connect.Structs[struct {
		ident.Table
		Rows            float64
		Readable, Empty bool
		column
	}](ctx, s.tx, columnsQuery, schemas, names, s.o.Tables == nil)
	if err != nil {
		return err
	}
	for _, c := range columns {
		t := s.named(c.Table)
		if t == nil {
			t = &table{Table: c.Table, Rows: c.Rows, Readable: c.Readable, Empty: c.Empty}
			s.tables, s.places[c.Table] = append(s.tables, t), t
		}
		t.columns = append(t.columns, c.column)
	}
	keys, err := connect.Structs[struct {
		ident.Table
		ToSchema, ToName string
		Columns, On      []string
	}](ctx, s.tx, referencesQuery)
	for _, k := range keys {
		if t := s.named(k.Table); t != nil {
			t.refers = append(t.refers, reference{k.Columns, ident.Table{Schema: k.ToSchema, Name: k.ToName}, k.On})
		}
	}
	return err
}

// large is the number of rows from which a part of the pages is read.
const large = 100_000

// sample is an item of FROM with some rows of a table.
func (s *search) sample(t *table) string {
	part := ""
	if t.Rows > large && t.Rows > 20*float64(s.o.Rows) {
		part = fmt.Sprintf(" TABLESAMPLE SYSTEM (%g)", max(0.001, 300*float64(s.o.Rows)/t.Rows))
	}
	return fmt.Sprintf("(SELECT * FROM %s%s LIMIT %d) s", t.SQL(), part, s.o.Rows)
}

// errLate reports that the time of the search is over.
var errLate = errors.New("the time of the search was over")

// query runs a query in a savepoint: after an error the transaction goes on.
func (s *search) query(ctx context.Context, run func(pgx.Tx) error) error {
	if time.Now().After(s.ends) {
		return errLate
	}
	return pgx.BeginFunc(ctx, s.tx, run)
}

// unread notes that a column, or with "" a table, was not examined because of an error of the server, and returns any
// other error. A nil error notes nothing.
func (s *search) unread(t *table, column string, err error) error {
	why, failed := "", (*pgconn.PgError)(nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errLate):
		why = err.Error()
	case errors.As(err, &failed) && failed.Code == "57014":
		why = "reading it takes too long"
	case errors.As(err, &failed):
		why = sqlstate.Withhold(failed).Error()
	default:
		return err
	}
	s.found.Unread = append(s.found.Unread, Unread{t.Table, column, why})
	return nil
}
