// Package ident writes names and texts as SQL. It is pure and does not use cgo, so that every process can use it.
package ident

import "strings"

// Quote returns a name in double quotes, which is right for every name including keywords, or several joined with dots.
func Quote(names ...string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = `"` + quotes.Replace(name) + `"`
	}
	return strings.Join(quoted, ".")
}

var quotes = strings.NewReplacer(`"`, `""`, "\x00", "") // the server rejects NUL

// List returns quoted names separated by commas: columns, or the value of search_path.
func List(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = Quote(name)
	}
	return strings.Join(quoted, ", ")
}

// Literal returns a string constant, for sessions with standard_conforming_strings on.
func Literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Table is the name of a relation as the catalog spells it: folded, without quotes.
type Table struct{ Schema, Name string }

// ParseTable splits schema.table as the configuration spells it; of a name without a dot, Schema is the whole.
func ParseTable(name string) Table {
	schema, rest, _ := strings.Cut(name, ".")
	return Table{Schema: schema, Name: rest}
}

// String returns schema.name without quotes, for messages.
func (t Table) String() string { return t.Schema + "." + t.Name }

// SQL returns the quoted name.
func (t Table) SQL() string { return Quote(t.Schema, t.Name) }

// ParseFunction splits the name of a function, "schema.name" or "name".
func ParseFunction(s string) (schema, name string, ok bool) {
	schema, name, qualified := strings.Cut(s, ".")
	if !qualified {
		schema, name = "", s
	}
	ok = name != "" && !strings.Contains(name, ".") && (schema != "" || !qualified)
	return schema, name, ok
}

// Bare returns the last part of a name that may have a schema.
func Bare(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// BareNames returns the last part of each name.
func BareNames(names []string) []string {
	bare := make([]string, len(names))
	for i, name := range names {
		bare[i] = Bare(name)
	}
	return bare
}
