package ddl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
)

// Description is the content of a schema of copies, as far as plans and results depend on it.
type Description struct {
	Lines     []string // one for each column, constraint, index, view and so on, sorted; the schema's own name in them is "copy"
	Columns   []string // only the columns, as queries see them: a neighbour of views has no more in common with D0
	Sequences map[string]source.Sequence
}

// Describe reads a schema in tx. Names in the schemas also count as its own.
func Describe(ctx context.Context, tx pgx.Tx, schema string, also ...string) (*Description, error) {
	// With this path the server prints every name outside pg_catalog qualified.
	if _, err := tx.Exec(ctx, "SET LOCAL search_path TO pg_catalog"); err != nil {
		return nil, err
	}
	m, err := source.ReadSchema(ctx, tx, schema)
	if err != nil {
		return nil, err
	}
	w := &writer{names: NewNames(m), schemas: append(also, schema), out: &Description{Sequences: map[string]source.Sequence{}}}
	for _, f := range m.Functions {
		w.names.Functions[f.Table] = f.Copy
	}
	for _, r := range m.Relations {
		w.relation(m, r)
	}
	d := Define(m)
	for _, group := range [][]Statement{d.Sequences, d.Indexes, d.Keys} {
		for _, s := range group {
			w.add("%s: %s", s.About, w.own(s.SQL, s.Defined))
		}
	}
	for _, s := range d.Views {
		w.add("%s: %s", s.About, w.own(s.SQL, s.Defined))
	}
	for _, f := range m.Functions {
		w.add("function %s: %s", f.Name, w.own(f.Definition, "FUNCTION"))
	}
	for _, s := range m.Sequences {
		w.out.Sequences[s.Name] = s
	}
	slices.Sort(w.out.Lines)
	slices.Sort(w.out.Columns)
	return w.out, nil
}

type writer struct {
	names   *Names
	schemas []string
	out     *Description
}

func (w *writer) add(format string, args ...any) {
	w.out.Lines = append(w.out.Lines, fmt.Sprintf(format, args...))
}

// own replaces the schema's own name by "copy". A text that cannot be parsed stays unchanged.
func (w *writer) own(sql, defined string) string {
	text, err := w.names.Rename(sql, "copy", defined)
	if err != nil {
		text = sql
	}
	for _, schema := range w.schemas { // in the bodies of functions
		text = strings.ReplaceAll(text, ident.Quote(schema)+".", `"copy".`)
	}
	return text
}

func (w *writer) relation(m *source.Model, r *source.Relation) {
	position := 0
	for i, c := range r.Columns {
		if c.Dropped {
			w.add("column number %d of %s is dropped", i+1, r.Name)
			continue
		}
		position++
		w.out.Columns = append(w.out.Columns, fmt.Sprintf("column %s.%s is number %d, type %s", r.Name, c.Name, position, c.Type))
		const head = "CREATE TABLE x ("
		definition := strings.TrimSuffix(strings.TrimPrefix(w.own(head+columnDefinition(m, r, c)+")", "NAME"), head), ")")
		w.add("column %s.%s is number %d, type %s: %s, statistics target %d, storage %q, options %v", r.Name, c.Name, i+1, c.Type, definition, c.Target, c.Storage, c.Options)
	}
	if !r.IsTable() {
		return // its query is a line
	}
	kind := "table"
	if r.PartKey != "" {
		kind = "table " + strings.TrimPrefix(w.own("CREATE TABLE x () PARTITION BY "+r.PartKey, ""), "CREATE TABLE x () ")
	}
	parents := make([]string, len(r.Parents))
	for i, oid := range r.Parents {
		parents[i] = m.ByOID(oid).Name
	}
	w.add("table %s: %s of %v, bound %q, options %v, stored %s", r.Name, kind, parents, r.PartBound, r.Options, r.Storage)
	const head = "ALTER TABLE x ADD "
	for _, c := range r.Checks {
		w.add("constraint %s of %s: %s", c.Name, r.Name, strings.TrimPrefix(w.own(head+c.Definition, ""), head))
	}
}
