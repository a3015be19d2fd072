package build

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/ddl"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
)

// Part is a part of the rows of the source, of which a Recreation makes its copies. It is a table of the work schema:
// this process reads no rows. They have places from 0: those of the unit are the last, before them those with the most
// values in common with these, and rows with equally many are in an order by a hash. It is not safe for concurrent use.
type Part struct {
	r    *Recreation
	unit int      // number of the unit whose rows must not all go
	kept []string // tables of the parts that were kept, the present one last
	next string   // that of the candidate; "" = none
	made int      // number of tables
}

// Part returns all rows as a part. world is the index of the unit by which D1 differs.
func (r *Recreation) Part(ctx context.Context, world int) (*Part, error) {
	p := &Part{r: r, unit: r.b.units[world].Number}
	var all []string
	for i, t := range r.b.Model.Tables() {
		if !t.Stores() {
			continue
		}
		name := r.b.staging.in(0, t)
		alike := "0"
		for _, column := range t.Stored() {
			alike += fmt.Sprintf(" + coalesce(t.%[1]s::text IN (SELECT u.%[1]s::text FROM ONLY %[2]s u JOIN %[3]s g ON g.unit = %[4]d AND g.rel = u.tableoid AND g.tid = u.ctid), false)::int",
				ident.Quote(column), name, r.b.staging.gone(), p.unit)
		}
		all = append(all, fmt.Sprintf("SELECT t.tableoid AS rel, t.ctid AS tid, %s AS alike, hashtextextended(t.ctid::text, %d) AS hash, %[2]d AS number FROM ONLY %s t", alike, i, name))
	}
	query := fmt.Sprintf("SELECT t.*, EXISTS (%s) AS own FROM (%s) t", p.ofUnit(), strings.Join(all, " UNION ALL "))
	if err := p.create(ctx, query, "own, alike, hash, number, tid"); err != nil {
		return nil, err
	}
	p.Keep()
	return p, nil
}

// ofUnit is the query that finds a row t among those of the unit.
func (p *Part) ofUnit() string {
	return fmt.Sprintf("SELECT FROM %s g WHERE g.unit = %d AND g.rel = t.rel AND g.tid = t.tid", p.r.b.staging.gone(), p.unit)
}

// create makes the candidate of a query, in an order.
func (p *Part) create(ctx context.Context, query, order string) error {
	p.made++
	name := fmt.Sprintf("part_%d", p.made)
	p.next = ident.Quote(p.r.b.staging.work(), name)
	return connect.Run(ctx, p.r.b.Conn,
		fmt.Sprintf("CREATE UNLOGGED TABLE %s AS SELECT row_number() OVER (ORDER BY %s) - 1 AS place, rel, tid FROM (%s) x", p.next, order, query),
		fmt.Sprintf("CREATE INDEX ON %s (rel, tid)", p.next), "ANALYZE "+p.next)
}

// Rows returns the numbers of rows of the present part: all, and those of the unit.
func (p *Part) Rows(ctx context.Context) (all, own int64, err error) {
	return p.count(ctx, p.kept[len(p.kept)-1])
}

func (p *Part) count(ctx context.Context, table string) (all, own int64, err error) {
	err = p.r.b.Conn.QueryRow(ctx, fmt.Sprintf("SELECT count(*), count(*) FILTER (WHERE EXISTS (%s)) FROM %s t", p.ofUnit(), table)).Scan(&all, &own)
	return all, own, err
}

// Without makes the candidate of the copies that are made next: the present part without the rows from a place to
// before another, and without the rows that then reference none of the rows that they reference. It returns false if no
// row of the unit is left.
func (p *Part) Without(ctx context.Context, from, to int64) (bool, error) {
	if err := p.Undo(ctx); err != nil {
		return false, err
	}
	conn, rest := p.r.b.Conn, ident.Quote(p.r.b.staging.work(), "rest")
	err := connect.Run(ctx, conn, "DROP TABLE IF EXISTS "+rest,
		fmt.Sprintf("CREATE UNLOGGED TABLE %s AS SELECT * FROM %s WHERE place < %d OR place >= %d", rest, p.kept[len(p.kept)-1], from, to),
		fmt.Sprintf("CREATE INDEX ON %s (rel, tid)", rest), "ANALYZE "+rest)
	if err != nil {
		return false, err
	}
	for again := true; again; {
		again = false
		for _, e := range p.r.b.references() {
			child, parent := p.r.b.staging.in(0, e.Child), p.r.b.staging.in(0, e.Parent)
			tag, err := conn.Exec(ctx, fmt.Sprintf(`DELETE FROM %[1]s t USING %[2]s c WHERE c.tableoid = t.rel AND c.ctid = t.tid AND EXISTS (SELECT FROM %[3]s p WHERE %[4]s)
				AND NOT EXISTS (SELECT FROM %[3]s p JOIN %[1]s x ON x.rel = p.tableoid AND x.tid = p.ctid WHERE %[4]s)`, rest, child, parent, e.Match("c", "p")))
			if err != nil {
				return false, err
			}
			again = again || tag.RowsAffected() > 0
		}
	}
	if _, own, err := p.count(ctx, rest); err != nil || own == 0 {
		return false, err
	}
	if err := p.create(ctx, "SELECT * FROM "+rest, "place"); err != nil {
		return false, err
	}
	p.r.b.part = p.next
	return true, nil
}

// Keep makes the candidate the present part.
func (p *Part) Keep() {
	p.kept, p.next = append(p.kept, p.next), ""
	p.r.b.part = p.kept[len(p.kept)-1]
}

// Undo drops the candidate, so that copies are made of the present part again.
func (p *Part) Undo(ctx context.Context) error {
	p.r.b.part = p.kept[len(p.kept)-1]
	if p.next == "" {
		return nil
	}
	table := p.next
	p.next = ""
	return connect.Run(ctx, p.r.b.Conn, "DROP TABLE "+table)
}

// Back makes the part before the present one the present part; false if there is none.
func (p *Part) Back() bool {
	if len(p.kept) < 2 {
		return false
	}
	p.kept = p.kept[:len(p.kept)-1]
	p.r.b.part = p.kept[len(p.kept)-1]
	return true
}

// references returns by which columns rows reference others: foreign keys and declared paths.
func (b *Builder) references() []source.Edge {
	all := slices.DeleteFunc(slices.Clone(b.g.Edges), func(e source.Edge) bool { return !e.Declared })
	for _, k := range b.Model.Keys {
		all = append(all, source.Edge{Child: b.Model.ByOID(k.Child), Parent: b.Model.ByOID(k.Parent), Columns: k.Columns, On: k.On, Period: k.Period})
	}
	return all
}

// tops returns the tables that are no partitions or children.
func (b *Builder) tops() []*source.Relation {
	return slices.DeleteFunc(b.Model.Tables(), func(r *source.Relation) bool { return len(r.Parents) > 0 })
}

// Tables returns the names of the tables at the source, without partitions and children.
func (r *Recreation) Tables() (all []string) {
	for _, t := range r.b.tops() {
		all = append(all, t.Table.String())
	}
	return all
}

// Count returns the numbers of rows of the copies in a schema, in the order of Tables.
func (r *Recreation) Count(ctx context.Context, schema string) (all []int64, err error) {
	for _, t := range r.b.tops() {
		n, err := connect.Value[int64](ctx, r.b.Conn, "SELECT count(*) FROM "+ident.Quote(schema, t.Copy))
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// Script returns statements that create the copy in a schema under another name: the tables with their rows, and of the
// functions and views over them those that the queries, or one of these, name. Types that are not built in, and other
// functions, must exist where it runs. It holds the values of the rows.
func (r *Recreation) Script(ctx context.Context, schema, name string, queries []string) ([]string, error) {
	o := r.b.objects
	script := []string{"CREATE SCHEMA " + ident.Quote(name)}
	define := func(statements ...ddl.Statement) error {
		for _, s := range statements {
			sql, err := o.names.Rename(s.SQL, name, s.Defined)
			if err != nil {
				return err
			}
			script = append(script, sql)
		}
		return nil
	}
	if err := define(slices.Concat(o.d.Sequences, o.d.Tables)...); err != nil {
		return nil, err
	}
	for _, t := range r.b.Model.Tables() {
		if !t.Stores() {
			continue
		}
		rows, err := r.inserts(ctx, schema, name, t)
		if err != nil {
			return nil, err
		}
		script = append(script, rows...)
	}
	functions, err := o.functionsFor(name)
	if err != nil {
		return nil, err
	}
	functions = r.named(append(functions, o.d.Views...), strings.Join(append(script, queries...), "\n"))
	if slices.ContainsFunc(functions, func(m ddl.Making) bool { return m.View == nil }) {
		script = append(script, "SET check_function_bodies TO off") // a body may read a view
	}
	for _, f := range functions {
		if err := define(f.Statement); err != nil {
			return nil, err
		}
	}
	return script, nil
}

// named returns the definitions whose names are in a text or in another one of them, and perhaps more: a name may be
// part of a word.
func (r *Recreation) named(all []ddl.Making, text string) []ddl.Making {
	used := make([]bool, len(all))
	for again := true; again; {
		again = false
		for i, m := range all {
			name := ""
			if m.View != nil {
				name = m.View.Name
			} else {
				name = r.b.Model.Functions[m.Function].Name
			}
			if !used[i] && strings.Contains(text, name) {
				used[i], again, text = true, true, text+"\n"+m.SQL
			}
		}
	}
	var out []ddl.Making
	for i, m := range all {
		if used[i] {
			out = append(out, m)
		}
	}
	return out
}

// inserts returns a statement that inserts the rows of a table; none for an empty one. Literals have the columns' types.
func (r *Recreation) inserts(ctx context.Context, schema, name string, t *source.Relation) ([]string, error) {
	stored := t.Stored()
	rows, err := connect.Values[string](ctx, r.b.Conn, fmt.Sprintf("SELECT concat_ws(', ', NULL, %s) FROM ONLY %s t ORDER BY t.ctid",
		ident.Each(stored, "quote_nullable(t.%[1]s::text)", ", "), ident.Quote(schema, t.Copy)))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	identity := ""
	if slices.ContainsFunc(t.Live(), func(c source.Column) bool { return c.Identity != "" }) {
		identity = " OVERRIDING SYSTEM VALUE"
	}
	return []string{fmt.Sprintf("INSERT INTO %s (%s)%s VALUES\n  (%s)", ident.Quote(name, t.Copy), ident.List(stored), identity, strings.Join(rows, "),\n  ("))}, nil
}
