package neighbours

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// description is the content of a schema of copies, as far as plans and results depend on it.
type description struct {
	lines   []string // one for each column, constraint, index, view and so on, sorted; the schema's own name in them is "copy"
	columns []string // only the columns, as queries see them: a neighbour of views has no more in common with D0
	values  map[string]sequence
}

// describe reads a schema in tx. Names in the schemas also count as its own.
func describe(ctx context.Context, tx pgx.Tx, schema string, also ...string) (*description, error) {
	// With this path the server prints every name outside pg_catalog qualified.
	if _, err := tx.Exec(ctx, "SET LOCAL search_path TO pg_catalog"); err != nil {
		return nil, err
	}
	m, err := readSchema(ctx, tx, schema)
	if err != nil {
		return nil, err
	}
	w := &writer{names: newNames(m), schemas: append(also, schema), out: &description{values: map[string]sequence{}}}
	for _, f := range m.functions {
		w.names.functions[f.Table] = f.copy
	}
	for _, r := range m.relations {
		w.relation(m, r)
	}
	d := define(m)
	for _, group := range [][]statement{d.sequences, d.indexes, d.keys} {
		for _, s := range group {
			w.add("%s: %s", s.about, w.own(s.sql, s.defined))
		}
	}
	for _, s := range d.views {
		w.add("%s: %s", s.about, w.own(s.sql, s.defined))
	}
	for _, f := range m.functions {
		w.add("function %s: %s", f.Name, w.own(f.definition, "FUNCTION"))
	}
	for _, s := range m.sequences {
		w.out.values[s.Name] = s
	}
	slices.Sort(w.out.lines)
	slices.Sort(w.out.columns)
	return w.out, nil
}

type writer struct {
	names   *names
	schemas []string
	out     *description
}

func (w *writer) add(format string, args ...any) {
	w.out.lines = append(w.out.lines, fmt.Sprintf(format, args...))
}

// own replaces the schema's own name by "copy". A text that cannot be parsed stays unchanged.
func (w *writer) own(sql, defined string) string {
	text, err := w.names.rename(sql, "copy", defined)
	if err != nil {
		text = sql
	}
	for _, schema := range w.schemas { // in the bodies of functions
		text = strings.ReplaceAll(text, ident.Quote(schema)+".", `"copy".`)
	}
	return text
}

func (w *writer) relation(m *model, r *relation) {
	position := 0
	for i, c := range r.columns {
		if c.dropped {
			w.add("column number %d of %s is dropped", i+1, r.Name)
			continue
		}
		position++
		w.out.columns = append(w.out.columns, fmt.Sprintf("column %s.%s is number %d, type %s", r.Name, c.name, position, c.typ))
		const head = "CREATE TABLE x ("
		definition := strings.TrimSuffix(strings.TrimPrefix(w.own(head+columnDefinition(m, r, c)+")", "NAME"), head), ")")
		w.add("column %s.%s is number %d, type %s: %s, statistics target %d, storage %q, options %v", r.Name, c.name, i+1, c.typ, definition, c.target, c.storage, c.options)
	}
	if !r.isTable() {
		return // its query is a line
	}
	kind := "table"
	if r.partKey != "" {
		kind = "table " + strings.TrimPrefix(w.own("CREATE TABLE x () PARTITION BY "+r.partKey, ""), "CREATE TABLE x () ")
	}
	parents := make([]string, len(r.parents))
	for i, oid := range r.parents {
		parents[i] = m.byOID(oid).Name
	}
	w.add("table %s: %s of %v, bound %q, options %v, stored %s", r.Name, kind, parents, r.partBound, r.options, r.storage)
	const head = "ALTER TABLE x ADD "
	for _, c := range r.checks {
		w.add("constraint %s of %s: %s", c.name, r.Name, strings.TrimPrefix(w.own(head+c.definition, ""), head))
	}
}
