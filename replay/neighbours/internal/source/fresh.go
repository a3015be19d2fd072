package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Place identifies a column by the topmost table that has it: partitions and children share it.
type Place struct {
	Top  *Relation
	Name string
}

// Fresh holds the columns of the added unit's rows that get new values, and the column from which each is derived: the
// unit's key, columns that reference it, and one column of each unique key that would otherwise repeat.
type Fresh struct {
	From map[Place]Place
	Via  map[Place]Edge // the reference, for columns that follow another
}

// Fresh determines the columns that get new values. The error names a unique key for which no new value can be
// generated.
func (g *Graph) Fresh() (*Fresh, error) {
	f := &Fresh{map[Place]Place{}, map[Place]Edge{}}
	for _, e := range g.Edges {
		if !e.Element.Plain() || e.AsText {
			return nil, fmt.Errorf("a unit cannot be added to the rows of %s by %s: use another relation", e.Child.Table, strings.Join(e.names(), ", "))
		}
	}
	for _, k := range g.Key {
		p := Place{g.Model.Top(g.Unit), k}
		f.From[p] = p
	}
	for changed := true; changed; {
		changed = false
		for _, e := range g.Edges {
			for i := range e.On {
				parent, child := Place{g.Model.Top(e.Parent), e.On[i]}, Place{g.Model.Top(e.Child), e.Columns[i]}
				root, ok := f.From[parent]
				if _, has := f.From[child]; ok && !has {
					f.From[child], f.Via[child], changed = root, e, true
				}
			}
		}
		if changed {
			continue
		}
		for _, r := range g.Model.Tables() {
			added, err := f.uniqueKeys(g.Model, r)
			if err != nil {
				return nil, err
			}
			changed = changed || added
		}
	}
	return f, nil
}

// uniqueKeys assigns a column to the first unique key of r that would repeat.
func (f *Fresh) uniqueKeys(m *Model, r *Relation) (bool, error) {
next:
	for _, i := range r.Indexes {
		if len(i.Unique) == 0 {
			continue
		}
		for _, name := range i.Unique {
			if _, ok := f.From[Place{m.Top(r), name}]; ok {
				continue next
			}
		}
		// A column of a foreign key would then reference nothing: it is the last choice.
		order := slices.Clone(i.Unique)
		slices.SortStableFunc(order, func(a, b string) int { return m.references(r, a) - m.references(r, b) })
		for _, name := range order {
			if _, err := NewValue("x", r.Column(name), "0"); err == nil {
				p := Place{m.Top(r), name}
				f.From[p] = p
				return true, nil
			}
		}
		return false, fmt.Errorf("the unique key %s of %s has no column of a type for which new values can be generated: use another relation", i.Name, r.Table)
	}
	return false, nil
}

// references returns 1 for a column of a foreign key of a table or of one above it, 0 for any other one.
func (m *Model) references(r *Relation, name string) int {
	if slices.ContainsFunc(m.Keys, func(k foreignKey) bool { return m.Within(r, m.ByOID(k.Child)) && slices.Contains(k.Columns, name) }) {
		return 1
	}
	return 0
}

// NewValue returns an expression for a value that no row has, derived from the value of a row; offset, see
// NewValueOffset, is larger than the range of the column's values. A hash cut to few characters may be an existing
// value: the unique key then rejects it.
func NewValue(value string, c *Column, offset string) (string, error) {
	switch c.Base {
	case 20, 21, 23: // int8, int2, int4
		return "(" + value + " + " + offset + ")::" + c.Type, nil
	case 1700:
		return value + " + " + offset, nil
	case 1082: // date
		return "(" + value + " + " + offset + ")::" + c.Type, nil
	case 1114, 1184: // timestamp, timestamptz
		return "(" + value + " + " + ident.Literal(offset) + "::interval)::" + c.Type, nil
	case 25, 1043: // text, varchar
		if offset != "0" {
			return "left(md5(" + value + " || 'dpwatch'), " + offset + ")", nil
		}
		return value + " || '~dpwatch'", nil
	case 2950: // uuid
		return "md5(" + value + "::text || 'dpwatch')::uuid", nil
	}
	return "", fmt.Errorf("no new value can be generated for column %s of type %s", c.Name, c.Type)
}

// NewValueOffset returns a query over the column %[1]s for the offset of another; "" = none needed, used as "0". For
// numbers and times it is more than their range, for a text type without room for a suffix the length of the type.
func NewValueOffset(c *Column) string {
	switch c.Base {
	case 20, 21, 23, 1700, 1082:
		return "SELECT (coalesce(max(%[1]s) - min(%[1]s), 0) + 1)::text"
	case 1114, 1184:
		return "SELECT (coalesce(max(%[1]s) - min(%[1]s), '0') + '1 day')::text"
	case 1043:
		var length int
		if _, err := fmt.Sscanf(c.Type, "character varying(%d)", &length); err == nil {
			return fmt.Sprintf("SELECT CASE WHEN coalesce(max(length(%%[1]s)), 0) + length('~dpwatch') <= %[1]d THEN '0' ELSE '%[1]d' END", length)
		}
	}
	return ""
}
