package owners

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

var (
	// kinds are the words by which a column that says of which table a generic reference is ends.
	kinds = set("type kind class model table entity collection ct")
	// things are words for the target of a generic reference.
	things = set("object item record target entity resource subject model row ref reference source parent owner content thing")
)

// kindColumns returns the columns of a table that may say what a column refers to: record_type for record_id,
// content_type_id for object_id, to_content_type_id for to_object_id, collection for item, reference for reference_id.
func kindColumns(t *table, name string) []column {
	var exact, generic []column
	base := thing(name)
	if len(base) == 0 {
		return nil
	}
	role, general := base[:len(base)-1], things[base[len(base)-1]]
	for _, c := range t.columns {
		words := thing(c.Name)
		if c.Name == name || len(words) == 0 || c.Array || c.family() != "text" && c.family() != "number" && !enum(c) {
			continue
		}
		if !kinds[words[len(words)-1]] {
			if general && slices.Equal(words, base) && c.family() == "text" && c.Name == strings.Join(words, "_") {
				exact = append(exact, c)
			}
			continue
		}
		before := words[:len(words)-1]
		if slices.Equal(before, base) {
			exact = append(exact, c)
			continue
		}
		if !general || len(before) > 0 && !things[before[len(before)-1]] {
			continue
		}
		of := before[:max(len(before)-1, 0)] // the words before content of to_content_type_id, base_content_type_id
		if (slices.Equal(of, role) || len(role) == 0 && slices.Equal(of, []string{"base"})) && (t.references(c.Name) ||
			!slices.ContainsFunc(t.columns, func(x column) bool { return x.Name != c.Name && slices.Equal(thing(x.Name), before) })) {
			generic = append(generic, c)
		}
	}
	if exact != nil {
		return exact
	}
	return generic
}

// thing returns the words of a column's name without those for a key at the end.
func thing(name string) []string {
	words := Words(name)
	for len(words) > 1 && keys[words[len(words)-1]] {
		words = words[:len(words)-1]
	}
	return words
}

// enum reports whether a column has a type that is not built in, such as an enum.
func enum(c column) bool {
	return families[c.Base] == "" && opaque[c.Base] == "" && !strings.HasPrefix(c.Type, "timestamp")
}

// pair examines a column that is the second part of a generic reference, and reports whether it is one.
func (s *search) pair(ctx context.Context, t *table, p probe) (bool, error) {
	kinds := kindColumns(t, p.column.Name)
	if len(kinds) == 0 || p.column.Array || !comparable(s.identities[0].column, p.column) {
		return false, nil
	}
	is := false
	for _, kind := range kinds {
		is = is || !slices.Equal(thing(kind.Name), thing(p.name)) // reference may be another text beside reference_id
		var found []struct {
			Value        string
			Values, Keys int64
			Long         bool // values that are not equal to keys by chance
		}
		err := s.query(ctx, func(tx pgx.Tx) (err error) {
			found, err = connect.Structs[struct {
				Value        string
				Values, Keys int64
				Long         bool
			}](ctx, tx, fmt.Sprintf("SELECT kind, count(*), count(*) FILTER (WHERE %s), avg(length(val)) >= 8 FROM (SELECT DISTINCT s.%s::text AS kind, s.%s::text AS val FROM %s) d WHERE kind IS NOT NULL AND val IS NOT NULL GROUP BY kind",
				match(s.unit, s.identities[0].column), ident.Quote(kind.Name), ident.Quote(p.column.Name), s.sample(t)))
			return err
		})
		if err != nil {
			return true, err
		}
		named, err := s.kindsOfUnit(ctx, t, kind)
		if err != nil {
			return true, err
		}
		if named == nil {
			s.found.Unread = append(s.found.Unread, Unread{t.Table, p.column.Name, "a generic reference: what the kinds in " + kind.Name + " are cannot be read"})
			continue
		}
		for _, f := range found {
			same := f.Long && s.identities[0].column.family() != "number" && f.Keys > 0 && f.Keys*10 >= f.Values*9
			if !named(f.Value) && !same { // a table may have the unit's keys as its own
				continue
			}
			is = true
			where := ident.Quote(kind.Name)
			if plainName(kind.Name) {
				where = kind.Name
			}
			literal := ident.Literal(f.Value)
			if kind.family() == "number" {
				literal = f.Value
			}
			s.found.Candidates = append(s.found.Candidates, Candidate{
				Table: t.Table, Columns: []string{p.path}, Where: where + " = " + literal, To: s.o.Unit, Values: f.Values, Found: f.Keys,
				Sure: f.Keys > 0 && f.Keys*10 >= f.Values*9,
				Why:  []string{fmt.Sprintf("a generic reference, of which column %s names the table; %s", kind.Name, s.values(float64(f.Keys)/float64(max(f.Values, 1)), s.identities[0]))},
			})
		}
	}
	return is, nil
}

// plainName reports whether a name needs no quotes in SQL.
func plainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; !(c == '_' || c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return name != ""
}

// kindsOfUnit returns the function that reports whether a value of a column of kinds means the unit's table: its name,
// or the key of a row that holds the name, in the table that the column refers to. It is nil if that is not known.
func (s *search) kindsOfUnit(ctx context.Context, t *table, kind column) (func(string) bool, error) {
	for _, r := range t.refers {
		if len(r.Columns) != 1 || r.Columns[0] != kind.Name {
			continue
		}
		to := s.named(r.To)
		if to == nil || !to.Readable || len(r.On) != 1 {
			return nil, nil //nolint:nilnil // nothing is known
		}
		var texts []string
		for _, c := range to.columns {
			if c.family() == "text" && !c.Array {
				texts = append(texts, ident.Quote(c.Name)+"::text")
			}
		}
		var rows []struct {
			Key   string
			Names []*string
		}
		err := s.query(ctx, func(tx pgx.Tx) (err error) {
			rows, err = connect.Structs[struct {
				Key   string
				Names []*string
			}](ctx, tx, fmt.Sprintf("SELECT %s::text, ARRAY[%s]::text[] FROM %s LIMIT 10000", ident.Quote(r.On[0]), strings.Join(texts, ", "), to.SQL()))
			return err
		})
		means := map[string]bool{}
		for _, row := range rows {
			means[row.Key] = slices.ContainsFunc(row.Names, func(name *string) bool { return name != nil && NamesTable(*name, s.o.Unit.Name) })
		}
		return func(value string) bool { return means[value] }, err
	}
	if kind.family() == "number" {
		return nil, nil //nolint:nilnil // nothing is known
	}
	return func(value string) bool { return NamesTable(value, s.o.Unit.Name) }, nil
}
