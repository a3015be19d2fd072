package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// filling is a database that the generator fills by its catalog, and what it knows about the rows: who owns them, and
// which cells name a person.
type filling struct {
	random *rand.Rand
	tables []*filledTable
	person *filledTable
	names  []naming
}

// filledTable is a table of the schema public. Rows are texts, nil for NULL.
type filledTable struct {
	name    string
	columns []*filledColumn
	keys    []*filledKey // foreign keys, and columns that hold keys without one
	unique  [][]int
	pairs   [][2]int // a column with the kind of an object, and one with its key
	rows    [][]*string
	owner   []int // of each row: the number of a person, or -1
	seen    map[string]bool
	old     int // rows of the migrations
	state   int // 0 empty, 1 in work, 2 filled
}

type filledColumn struct {
	name, kind         string
	length             int
	notNull, generated bool
	labels             []string // of an enum, or of a check
	holds              string   // "array" of persons' keys, or "json" with a person's key
}

// filledKey refers to columns of another table. Own is a person's key that says whose the row is; the others are acts.
type filledKey struct {
	columns, target []int
	to              *filledTable
	own, declared   bool
}

var (
	acts    = regexp.MustCompile(`_by(_user)?(_id)?$|^(creator|editor|uploader|last_editor|approver)(_id)?$|^user_(created|updated)$`)
	persons = regexp.MustCompile(`(^|_)(user|owner|author|customer|member|recipient|sender|receiver|patient|account)(_id)?$`)
	either  = regexp.MustCompile(`^(requested|submitted|reported)_by(_id)?$`) // an act or not
	emails  = regexp.MustCompile(`(^|_)e?mail(_address)?$`)
	logins  = regexp.MustCompile(`^(username|login|handle|nickname)$`)
	many    = regexp.MustCompile(`^(watchers|members|participants|user_ids|followers)$`)
	objects = regexp.MustCompile(`^(actor|payload|app_metadata|context)$`)
	phones  = regexp.MustCompile(`phone|mobile`)
	listed  = regexp.MustCompile(`'([^']*)'::`)
)

const catalogColumns = `SELECT c.oid, c.relname, a.attname, a.attnum, format_type(a.atttypid, NULL), a.atttypid::regtype::text, GREATEST(a.atttypmod - 4, 0),
  a.attnotnull, a.attgenerated <> '', COALESCE((SELECT array_agg(enumlabel::text ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = a.atttypid), '{}'),
  COALESCE((SELECT string_agg(pg_get_constraintdef(k.oid), ' ') FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c' AND k.conkey = ARRAY[a.attnum]), '')
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY c.relname COLLATE "C", a.attnum`

// fill fills the tables of the schema public with rows of 200 persons, the same for the same seed.
func fill(ctx context.Context, conn *pgx.Conn, person string, seed uint64) (*filling, error) {
	f := &filling{random: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // reproducible
	if err := f.read(ctx, conn, person); err != nil {
		return nil, err
	}
	for _, t := range f.tables {
		if err := f.existing(ctx, conn, t); err != nil {
			return nil, err
		}
	}
	for _, t := range append([]*filledTable{f.person}, f.tables...) {
		f.draw(t)
	}
	f.patch()
	f.collect()
	if _, err := conn.Exec(ctx, "SET session_replication_role = replica"); err != nil { // the keys are right, in any order
		return nil, err
	}
	for _, t := range f.tables {
		if err := f.write(ctx, conn, t); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	_, err := conn.Exec(ctx, "RESET session_replication_role; ANALYZE")
	return f, err
}

// read reads tables, columns, unique indexes and foreign keys, and guesses which other columns hold keys.
func (f *filling) read(ctx context.Context, conn *pgx.Conn, person string) error {
	byOID := map[uint32]*filledTable{}
	number := map[string]int{} // OID.attnum: place
	rows, err := conn.Query(ctx, catalogColumns)
	if err != nil {
		return err
	}
	for rows.Next() {
		var oid uint32
		var attnum int16
		var table, internal, check string
		c := &filledColumn{}
		if err := rows.Scan(&oid, &table, &c.name, &attnum, &c.kind, &internal, &c.length, &c.notNull, &c.generated, &c.labels, &check); err != nil {
			return err
		}
		if strings.Contains(check, "ARRAY[") {
			for _, m := range listed.FindAllStringSubmatch(check, -1) {
				c.labels = append(c.labels, m[1])
			}
		}
		t := byOID[oid]
		if t == nil {
			t = &filledTable{name: table, seen: map[string]bool{}}
			byOID[oid], f.tables = t, append(f.tables, t)
		}
		number[fmt.Sprint(oid, ".", attnum)] = len(t.columns)
		t.columns = append(t.columns, c)
		if table == person {
			f.person = t
		}
	}
	if rows.Err() != nil || f.person == nil {
		return fmt.Errorf("no table %s, %w", person, rows.Err())
	}
	places := func(oid uint32, attnums []int16) (all []int) {
		for _, n := range attnums {
			if place, ok := number[fmt.Sprint(oid, ".", n)]; ok {
				all = append(all, place)
			}
		}
		return all
	}
	rows, err = conn.Query(ctx, "SELECT indrelid, indkey::int2[], 0::oid, '{}'::int2[] FROM pg_index WHERE indisunique UNION ALL "+
		"SELECT conrelid, conkey, confrelid, confkey FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 ORDER BY 1, 2, 3")
	if err != nil {
		return err
	}
	for rows.Next() {
		var oid, to uint32
		var columns, target []int16
		if err := rows.Scan(&oid, &columns, &to, &target); err != nil {
			return err
		}
		t := byOID[oid]
		switch {
		case t == nil:
		case to == 0:
			t.unique = append(t.unique, places(oid, columns))
		case byOID[to] != nil:
			key := &filledKey{columns: places(oid, columns), to: byOID[to], target: places(to, target), declared: true}
			key.own = key.to == f.person && !acts.MatchString(t.columns[key.columns[0]].name)
			t.keys = append(t.keys, key)
		}
	}
	for _, t := range f.tables {
		f.guess(t)
	}
	return rows.Err()
}

// primary is the place of a key of one column, or -1.
func (t *filledTable) primary() int {
	for i, c := range t.columns {
		if t.alone(i) && c.notNull {
			return i
		}
	}
	return -1
}

// alone reports whether no two rows have the same value of a column.
func (t *filledTable) alone(column int) bool {
	return slices.ContainsFunc(t.unique, func(u []int) bool { return len(u) == 1 && u[0] == column })
}

func (t *filledTable) column(name string) int {
	return slices.IndexFunc(t.columns, func(c *filledColumn) bool { return c.name == name })
}

func (t *filledTable) keyed(column int) *filledKey {
	for _, k := range t.keys {
		if slices.Contains(k.columns, column) {
			return k
		}
	}
	return nil
}

// guess finds columns of a table that hold keys without a foreign key, and pairs of a kind and a key.
func (f *filling) guess(t *filledTable) {
	for i, c := range t.columns {
		switch p := f.person.primary(); {
		case many.MatchString(c.name) && c.kind == f.person.columns[p].kind+"[]":
			c.holds = "array"
		case objects.MatchString(c.name) && strings.HasPrefix(c.kind, "json"):
			c.holds = "json"
		}
		if t.keyed(i) != nil || i == t.primary() {
			continue
		}
		if to := f.named(t, c); to != nil {
			t.keys = append(t.keys, &filledKey{columns: []int{i}, to: to, target: []int{to.primary()}, own: to == f.person && !acts.MatchString(c.name)})
			continue
		}
		stem, ok := strings.CutSuffix(strings.Replace(c.name, "item", "collection_id", 1), "_id")
		for _, kind := range []string{stem + "_type", stem, strings.TrimSuffix(stem, "object") + "content_type_id", "base_content_type_id"} {
			if k := t.column(kind); ok && k >= 0 && k != i && (t.keyed(k) == nil && isText(t.columns[k].kind) && t.columns[k].holdsText(f.person.name) || stem != kind && strings.HasSuffix(stem, "object")) {
				t.pairs = append(t.pairs, [2]int{k, i})
				break
			}
		}
	}
}

// named is the table whose keys a column without a foreign key holds by its name: that of its name, or the persons'.
func (f *filling) named(t *filledTable, c *filledColumn) *filledTable {
	fits := func(to *filledTable) bool {
		p := to.primary()
		return p >= 0 && to.columns[p].kind == c.kind && to.keyed(p) == nil
	}
	if name, ok := strings.CutSuffix(c.name, "_id"); ok {
		for _, suffix := range []string{"", "_"} {
			for _, to := range f.tables {
				if (to.name == name || suffix != "" && strings.HasSuffix(to.name, suffix+name)) && to != t && fits(to) {
					return to
				}
			}
		}
	}
	if act := acts.MatchString(c.name); (act || persons.MatchString(c.name)) && fits(f.person) {
		for _, to := range f.tables { // who acts on what is nobody's is of the staff
			if act && to.name == "user" && fits(to) && !slices.ContainsFunc(t.keys, func(k *filledKey) bool { return k.own }) {
				return to
			}
		}
		return f.person
	}
	return nil
}

// existing reads the rows that the migrations made.
func (f *filling) existing(ctx context.Context, conn *pgx.Conn, t *filledTable) error {
	var list []string
	for _, c := range t.columns {
		list = append(list, quoted(c.name)+"::text")
	}
	rows, err := conn.Query(ctx, "SELECT "+strings.Join(list, ", ")+" FROM "+quoted(t.name)+" ORDER BY 1")
	if err != nil {
		return err
	}
	for rows.Next() {
		row := make([]*string, len(t.columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		t.add(row, -1)
	}
	t.old = len(t.rows)
	return rows.Err()
}

// add adds a row unless a unique index forbids it.
func (t *filledTable) add(row []*string, owner int) bool {
	var tuples []string
	for n, columns := range t.unique {
		if values := tuple(row, columns); values != "" {
			values = strconv.Itoa(n) + values
			if t.seen[values] {
				return false
			}
			tuples = append(tuples, values)
		}
	}
	for _, values := range tuples {
		t.seen[values] = true
	}
	t.rows, t.owner = append(t.rows, row), append(t.owner, owner)
	return true
}

// draw draws the rows of a table after those of the tables that it refers to. Tables that others refer to and that
// refer to nothing are lists of a few rows, if they are not the persons'; lists of the migrations stay as they are.
func (f *filling) draw(t *filledTable) {
	if t.state > 0 {
		return
	}
	t.state = 1
	refers, referred := false, false
	for _, k := range t.keys {
		f.draw(k.to)
		refers = refers || k.to != t
	}
	for _, other := range f.tables {
		referred = referred || other != t && slices.ContainsFunc(other.keys, func(k *filledKey) bool { return k.to == t })
	}
	count := 300
	switch {
	case t == f.person:
		count = 200
	case !refers && t.old > 0, t.old >= 20, strings.Contains(t.name, "migration"):
		count = 0
	case !refers && referred:
		count = 8
	}
	for n := 0; n < count; n++ {
		for range 40 {
			row, owner := f.row(t)
			if t == f.person {
				owner = len(t.rows)
			}
			if t.add(row, owner) {
				break
			}
		}
	}
	t.state = 2
}

// write appends the new rows. Where a check forbids one, the columns of the check that may be are NULL in all of them.
func (f *filling) write(ctx context.Context, conn *pgx.Conn, t *filledTable) error {
	var list, params []string
	var places []int
	for i, c := range t.columns {
		if !c.generated {
			places, list = append(places, i), append(list, quoted(c.name))
			params = append(params, fmt.Sprintf("$%d", len(places)))
		}
	}
	insert := fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE VALUES (%s)", quoted(t.name), strings.Join(list, ", "), strings.Join(params, ", "))
	for attempt := 0; ; attempt++ {
		batch := &pgx.Batch{}
		batch.Queue("BEGIN")
		for _, row := range t.rows[t.old:] {
			args := make([]any, len(places))
			for i, place := range places {
				if args[i] = any(nil); row[place] != nil {
					args[i] = *row[place]
				}
			}
			batch.Queue(insert, args...)
		}
		batch.Queue("COMMIT")
		err := conn.SendBatch(ctx, batch).Close()
		var violated *pgconn.PgError
		if err == nil || attempt > 3 || !errors.As(err, &violated) || violated.Code != "23514" {
			return err
		}
		if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
			return err
		}
		var columns []string
		if err := conn.QueryRow(ctx, "SELECT array_agg(attname::text) FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey) AND NOT attnotnull "+
			"WHERE conrelid = $1::regclass AND conname = $2", quoted(t.name), violated.ConstraintName).Scan(&columns); err != nil {
			return err
		}
		for _, name := range columns {
			for _, row := range t.rows[t.old:] {
				row[t.column(name)] = nil
			}
		}
	}
}
