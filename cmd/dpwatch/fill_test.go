package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
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

// naming is a column whose values name persons. Own ones say whose the row is; acts do not. The others are second
// owners: objects, arrays and JSON.
type naming struct {
	table, column string
	by            int // the column of the person that it holds
	own, act      bool
	sql           string // the condition, with %s for the value
	values        func(row []*string) []string
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

// fill fills the tables of the schema public with rows for a number of persons, the same for the same seed.
func fill(ctx context.Context, conn *pgx.Conn, person string, count int, seed uint64) (*filling, error) {
	f := &filling{random: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // reproducible
	if err := f.read(ctx, conn, person); err != nil {
		return nil, err
	}
	for _, t := range f.tables {
		if err := f.existing(ctx, conn, t); err != nil {
			return nil, err
		}
	}
	f.draw(f.person, count)
	for _, t := range f.tables {
		f.draw(t, 0)
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
func (f *filling) draw(t *filledTable, count int) {
	if t.state > 0 {
		return
	}
	t.state = 1
	refers, referred := false, false
	for _, k := range t.keys {
		f.draw(k.to, 0)
		refers = refers || k.to != t
	}
	for _, other := range f.tables {
		referred = referred || other != t && slices.ContainsFunc(other.keys, func(k *filledKey) bool { return k.to == t })
	}
	switch {
	case count > 0:
	case t == f.person:
		count = 200
	case !refers && t.old > 0, t.old >= 20, strings.Contains(t.name, "migration"):
	case !refers && referred:
		count = 8
	default:
		count = 300
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

// pick returns a row of a table; of the first rows more often.
func (f *filling) pick(t *filledTable) int {
	r := f.random.Float64()
	return int(r * r * float64(len(t.rows)))
}

func (f *filling) row(t *filledTable) ([]*string, int) {
	row, owner, through := make([]*string, len(t.columns)), -1, -1
	for _, k := range t.keys {
		f.refer(t, row, k, &owner, &through)
	}
	if owner < 0 {
		owner = through
	}
	done := map[int]bool{}
	for _, pair := range t.pairs {
		f.object(t, row, pair)
		done[pair[0]], done[pair[1]] = true, true
	}
	for i, c := range t.columns {
		if row[i] == nil && t.keyed(i) == nil && !done[i] && !c.generated {
			row[i] = f.value(t, i, owner)
		}
	}
	return row, owner
}

// refer points a key of a row at a row of its table; most nullable keys are set. A key of a table in work is set by patch.
func (f *filling) refer(t *filledTable, row []*string, k *filledKey, owner, through *int) {
	nullable := slices.ContainsFunc(k.columns, func(c int) bool { return !t.columns[c].notNull })
	if k.to.state == 1 && k.to != t || len(k.to.rows) == 0 || nullable && f.random.IntN(4) == 0 {
		return
	}
	n := f.pick(k.to)
	for i, c := range k.columns {
		row[c] = k.to.rows[n][k.target[i]]
	}
	switch {
	case k.own && *owner < 0:
		*owner = n
	case k.to != f.person && *through < 0 && k.declared:
		*through = k.to.owner[n]
	}
}

// object sets a pair of a kind and a key: every third names a person.
func (f *filling) object(t *filledTable, row []*string, pair [2]int) {
	kind, to := t.columns[pair[0]], f.person
	if f.random.IntN(3) > 0 || len(kind.labels) > 0 {
		to = f.tables[f.random.IntN(len(f.tables))]
	}
	if !kind.holdsText(to.name) {
		to = f.person
	}
	label := to.name
	if k := t.keyed(pair[0]); k != nil {
		n := f.kindOf(k.to, to)
		if n < 0 {
			if n, to = f.kindOf(k.to, f.person), f.person; n < 0 && t.columns[pair[1]].notNull {
				n, to = f.pick(k.to), t
			}
		}
		if n < 0 {
			return
		}
		label = *k.to.rows[n][k.target[0]]
	} else if len(kind.labels) > 0 {
		label = kind.labels[0]
	}
	key := strconv.Itoa(1 + f.random.IntN(500))
	if p := to.primary(); p >= 0 && len(to.rows) > 0 && (to.columns[p].kind == t.columns[pair[1]].kind || isText(t.columns[pair[1]].kind)) {
		key = *to.rows[f.pick(to)][p]
	} else if t.columns[pair[1]].kind == "uuid" {
		key = digest(t.name, f.random.IntN(500))
	}
	row[pair[0]], row[pair[1]] = &label, &key
}

// kindOf is the row of a table of kinds (content types) that stands for a table, or -1.
func (f *filling) kindOf(kinds, to *filledTable) int {
	app, model := kinds.column("app_label"), kinds.column("model")
	return slices.IndexFunc(kinds.rows, func(row []*string) bool {
		return app >= 0 && model >= 0 && *row[app]+"_"+*row[model] == to.name
	})
}

// patch sets the keys whose table was in work when their rows were drawn.
func (f *filling) patch() {
	for _, t := range f.tables {
		for _, k := range t.keys {
			for n := t.old; n < len(t.rows); n++ {
				if row := t.rows[n]; row[k.columns[0]] == nil && len(k.to.rows) > 0 && (t.columns[k.columns[0]].notNull || f.random.IntN(2) == 0) &&
					!slices.ContainsFunc(t.unique, func(u []int) bool { return slices.Contains(u, k.columns[0]) }) {
					owner, through := t.owner[n], -1
					f.refer(t, row, k, &owner, &through)
				}
			}
		}
	}
}

// collect lists the columns that name persons.
func (f *filling) collect() {
	p := f.person.primary()
	for _, t := range f.tables {
		name := func(column, by int, own, act bool, sql string, values func(cell string, row []*string) []string) {
			f.names = append(f.names, naming{t.name, t.columns[column].name, by, own && t != f.person, act, fmt.Sprintf(sql, quoted(t.columns[column].name)), func(row []*string) []string {
				if row[column] == nil {
					return nil
				}
				return values(*row[column], row)
			}})
		}
		whole := func(cell string, _ []*string) []string { return []string{cell} }
		for _, k := range t.keys {
			if k.to == f.person {
				name(k.columns[0], k.target[0], k.own, !k.own && !either.MatchString(t.columns[k.columns[0]].name), "%s::text = %%s", whole)
			}
		}
		if t == f.person {
			continue
		}
		for _, pair := range t.pairs {
			label := f.person.name
			if k := t.keyed(pair[0]); k != nil {
				n := f.kindOf(k.to, f.person)
				if n < 0 {
					continue
				}
				label = *k.to.rows[n][k.target[0]]
			}
			where := fmt.Sprintf("%s::text = '%s' AND ", quoted(t.columns[pair[0]].name), label)
			name(pair[1], p, false, false, where+"%s::text = %%s", func(cell string, row []*string) []string {
				if row[pair[0]] == nil || *row[pair[0]] != label {
					return nil
				}
				return []string{cell}
			})
		}
		for i, c := range t.columns {
			switch c.holds {
			case "array":
				name(i, p, false, false, "%%s = ANY (%s::text[])", func(cell string, _ []*string) []string { return strings.Split(strings.Trim(cell, "{}"), ",") })
			case "json":
				name(i, p, false, false, "%s->>'"+f.person.name+"_id' = %%s", func(cell string, _ []*string) []string { return strings.Split(cell, `"`)[3:4] })
			}
			for n, same := range []*regexp.Regexp{emails, logins, phones} {
				if by := f.person.holding(same); by >= 0 && same.MatchString(c.name) && isText(c.kind) && !t.alone(i) {
					name(i, by, n == 0, false, "%s::text = %%s", whole)
				}
			}
		}
	}
}

func (f *filling) of(table *filledTable) (all []naming) {
	for _, n := range f.names {
		if n.table == table.name {
			all = append(all, n)
		}
	}
	return all
}

// holding is the first text column with a name of a kind, or -1.
func (t *filledTable) holding(name *regexp.Regexp) int {
	return slices.IndexFunc(t.columns, func(c *filledColumn) bool { return name.MatchString(c.name) && isText(c.kind) })
}

func quoted(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// holdsText reports whether a text is not too long for the type of a column.
func (c *filledColumn) holdsText(text string) bool { return c.length == 0 || len(text) <= c.length }

func isText(kind string) bool {
	return kind == "text" || strings.HasPrefix(kind, "character") || kind == "citext"
}

func digest(parts ...any) string {
	h := fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(parts...))))
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

var given, family = strings.Fields("Ann Ben Cleo Dan Eva Finn Gina Hugo Ines Jon"), strings.Fields("Berg Cole Diaz Endo Ford Gray Hall Ito Jung Kerr")

// value draws a value that fits the type and the name of a column.
func (f *filling) value(t *filledTable, i, owner int) *string {
	c, n := t.columns[i], len(t.rows)
	alone := t.alone(i)
	if !c.notNull && !alone && t != f.person && f.random.IntN(10) == 0 || strings.Contains(c.name, "deleted") && !c.notNull {
		return nil
	}
	text := func(format string, args ...any) *string {
		s := fmt.Sprintf(format, args...)
		if kind := c.kind; strings.HasPrefix(kind, "character") && c.length > 0 && len(s) > c.length {
			if s = s[len(s)-c.length:]; alone {
				s = strconv.FormatInt(int64(n)+36*36, 36)
				s = s[max(0, len(s)-c.length):]
			}
		}
		return &s
	}
	number := f.random.IntN(60)
	if alone || i == t.primary() {
		number = n + 1
		for _, row := range t.rows[:t.old] {
			if row[i] != nil {
				old, _ := strconv.Atoi(*row[i])
				number = max(number, old+n+1)
			}
		}
	}
	switch {
	case len(c.labels) > 0:
		return text("%s", c.labels[f.random.IntN(len(c.labels))])
	case c.holds == "array":
		return text("{%s,%s}", *f.person.rows[f.pick(f.person)][f.person.primary()], *f.person.rows[f.pick(f.person)][f.person.primary()])
	case c.holds == "json":
		return text(`{"%s_id": "%s", "n": %d}`, f.person.name, *f.person.rows[f.pick(f.person)][f.person.primary()], number)
	case strings.HasSuffix(c.kind, "[]"):
		return text("{}")
	case isText(c.kind):
		return f.text(t, i, owner, alone, text)
	}
	switch c.kind {
	case "smallint", "integer", "bigint":
		return text("%d", number)
	case "numeric", "real", "double precision", "money":
		return text("%d.%d", number, f.random.IntN(10))
	case "boolean":
		return text("%t", f.random.IntN(2) == 0)
	case "uuid":
		return text("%s", digest(t.name, c.name, n))
	case "date":
		return text("%d-%02d-%02d", 1950+f.random.IntN(60), 1+f.random.IntN(12), 1+f.random.IntN(28))
	case "timestamp with time zone", "timestamp without time zone":
		return text("2026-%02d-%02d %02d:%02d:00", 1+f.random.IntN(9), 1+f.random.IntN(28), f.random.IntN(24), f.random.IntN(60))
	case "time without time zone", "time with time zone":
		return text("%02d:%02d:00", f.random.IntN(24), f.random.IntN(60))
	case "interval":
		return text("%d minutes", number)
	case "json", "jsonb":
		return text(`{"n": %d}`, number)
	case "inet", "cidr":
		return text("10.0.%d.%d", f.random.IntN(200), f.random.IntN(200))
	case "bytea":
		return text(`\x%04x`, number)
	case "tsvector", "ltree", "xml", "hstore":
		return text("")
	}
	return nil
}

// text draws a text by the name of its column: addresses, logins and phones are those of the row's owner or of a person.
func (f *filling) text(t *filledTable, i, owner int, alone bool, text func(string, ...any) *string) *string {
	c, n := t.columns[i], len(t.rows)
	for _, same := range []*regexp.Regexp{emails, logins, phones} {
		if !same.MatchString(c.name) {
			continue
		}
		if by := f.person.holding(same); t != f.person && !alone && by >= 0 && len(f.person.rows) > 0 && (owner >= 0 || f.random.IntN(2) == 0) {
			if owner < 0 {
				owner = f.pick(f.person)
			}
			return f.person.rows[owner][by]
		}
		login := strings.ToLower(given[n%10]) + "." + t.name[:1] + strconv.Itoa(n)
		return text([]string{"%[1]s@example.com", "%[1]s", "+1555%07[2]d"}[slices.Index([]*regexp.Regexp{emails, logins, phones}, same)], login, n)
	}
	switch {
	case i == t.primary():
		return text("%s_%s", t.name[:min(4, len(t.name))], strings.ReplaceAll(digest(t.name, n), "-", ""))
	case alone, slices.ContainsFunc(t.unique, func(u []int) bool { return slices.Contains(u, i) }), c.name == "path":
		return text("%s-%d", c.name, n)
	case c.name == "first_name":
		return text("%s", given[f.random.IntN(10)])
	case c.name == "last_name":
		return text("%s", family[f.random.IntN(10)])
	}
	return text("%s %c", strings.ReplaceAll(c.name, "_", " "), 'a'+rune(f.random.IntN(5)))
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
		if err == nil || attempt > 3 || !asViolation(err, &violated) {
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

// asViolation reports whether a check was violated.
func asViolation(err error, to **pgconn.PgError) bool {
	return errors.As(err, to) && (*to).Code == "23514"
}

// belongs lists the persons of each row of each table: those that a column of its own or a pair names, or an act that
// cannot be NULL; where a table has no column of its own, also those of the rows that its keys refer to.
func (f *filling) belongs() map[*filledTable][]map[int]bool {
	all, known := map[*filledTable][]map[int]bool{}, map[string]int{}
	for n, row := range f.person.rows {
		for by, value := range row {
			if value != nil {
				known[strconv.Itoa(by)+" "+*value] = n
			}
		}
	}
	own := map[*filledTable]bool{f.person: true}
	for _, t := range f.tables {
		all[t] = make([]map[int]bool, len(t.rows))
		for n := range t.rows {
			if all[t][n] = map[int]bool{}; t == f.person {
				all[t][n][n] = true
			}
		}
		for _, name := range f.of(t) {
			own[t] = own[t] || name.own
			for n, row := range t.rows {
				for _, value := range name.values(row) {
					if person, ok := known[strconv.Itoa(name.by)+" "+value]; ok && (!name.act || t.columns[t.column(name.column)].notNull) {
						all[t][n][person] = true
					}
				}
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, t := range f.tables {
			for _, k := range t.keys {
				if own[t] || k.to == f.person {
					continue
				}
				parents := map[string]map[int]bool{}
				for n, row := range k.to.rows {
					parents[tuple(row, k.target)] = all[k.to][n]
				}
				for n, row := range t.rows {
					for person := range parents[tuple(row, k.columns)] {
						changed = changed || !all[t][n][person]
						all[t][n][person] = true
					}
				}
			}
		}
	}
	return all
}

// tuple is the text of some columns of a row; of none if one is NULL.
func tuple(row []*string, columns []int) (text string) {
	for _, c := range columns {
		if row[c] == nil {
			return ""
		}
		text += "\x00" + *row[c]
	}
	return text
}

const clipped = 50

// query is a number that a table is asked for, in which @ stands for the schema, and the most that it changes if the
// rows of one person are missing.
type query struct {
	sql  string
	most float64
}

// queries are a count, a sum and a count of distinct persons of a table, and the most that they change together, each
// in units of its own most.
func (f *filling) queries(t *filledTable, belongs []map[int]bool) (all []query, together float64) {
	name := quoted(t.name)
	number := slices.IndexFunc(t.columns, func(c *filledColumn) bool {
		i := t.column(c.name)
		return slices.Contains([]string{"integer", "bigint", "smallint", "numeric"}, c.kind) && t.keyed(i) == nil && i != t.primary() && !c.generated &&
			!slices.ContainsFunc(t.pairs, func(p [2]int) bool { return p[1] == i })
	})
	named := slices.IndexFunc(f.names, func(n naming) bool {
		return n.table == t.name && n.own && strings.HasPrefix(n.sql, quoted(n.column)+"::text =")
	})
	changes := []map[int]float64{{}, {}, {}}
	rows, lost := map[string]int{}, map[string]int{}
	distinct := -1
	all = append(all, query{sql: "SELECT count(*) FROM @." + name})
	if number >= 0 {
		all = append(all, query{sql: fmt.Sprintf("SELECT COALESCE(sum(trunc(LEAST(GREATEST(%s, 0), 50))), 0) FROM @.%s", quoted(t.columns[number].name), name)})
	}
	if named >= 0 {
		distinct = t.column(f.names[named].column)
		all = append(all, query{sql: fmt.Sprintf("SELECT count(DISTINCT %s) FROM @.%s", quoted(f.names[named].column), name)})
		for _, row := range t.rows {
			rows[tuple(row, []int{distinct})]++
		}
	}
	for n, row := range t.rows {
		for person := range belongs[n] {
			changes[0][person]++
			if number >= 0 && row[number] != nil {
				value, _ := strconv.ParseFloat(*row[number], 64)
				changes[1][person] += math.Trunc(min(max(value, 0), 50))
			}
			if distinct >= 0 && row[distinct] != nil {
				value := tuple(row, []int{distinct})
				key := strconv.Itoa(person) + value
				if lost[key]++; lost[key] == rows[value] {
					changes[len(all)-1][person]++
				}
			}
		}
	}
	for i := range all {
		for _, change := range changes[i] {
			all[i].most = max(all[i].most, change)
		}
	}
	for person := range changes[0] {
		sum := 0.0
		for i, q := range all {
			sum += changes[i][person] / max(q.most, 1)
		}
		together = max(together, sum)
	}
	return all, together
}
