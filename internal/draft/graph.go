package draft

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

// graph is a schema by its references.
type graph struct {
	schema
	places   map[ident.Table]int
	children map[ident.Table][]edge // the references to a table
	columns  map[string][]int       // the tables with a column, by its name in lower case
}

// edge is a reference of a table.
type edge struct {
	from    int
	columns []string
}

func newGraph(s schema) *graph {
	g := &graph{s, map[ident.Table]int{}, map[ident.Table][]edge{}, map[string][]int{}}
	for i, t := range s.tables {
		g.places[t.Table] = i
		for _, r := range t.refers {
			g.children[r.to] = append(g.children[r.to], edge{i, r.columns})
		}
		for _, c := range t.columns {
			name := strings.ToLower(c.name)
			g.columns[name] = append(g.columns[name], i)
		}
	}
	return g
}

// acts reports whether columns that refer to a table name who did something to the row: created_by, creator_id. The row is not that person's.
func acts(columns []string, to ident.Table) bool {
	return len(columns) == 1 && owners.Act(columns[0], to.Name)
}

// path says that the rows of a table belong to the unit with the same value in a column, without a foreign key.
type path struct {
	table  ident.Table
	column string
}

// reaching returns the tables with a path of foreign keys to a table, or to one with a path without a foreign key, with
// the reason. Columns that name who did something lead nowhere.
func (g *graph) reaching(unit int, paths []path) map[ident.Table]string {
	reached := map[ident.Table]string{}
	queue := []ident.Table{g.tables[unit].Table}
	for _, p := range paths {
		if reached[p.table] == "" && p.table != queue[0] {
			reached[p.table] = "its column " + shown(p.column) + " holds keys without a foreign key: see paths"
			queue = append(queue, p.table)
		}
	}
	for i := 0; i < len(queue); i++ {
		for _, e := range g.children[queue[i]] {
			t := g.tables[e.from].Table
			if t == queue[0] || reached[t] != "" || acts(e.columns, queue[i]) {
				continue
			}
			reached[t] = fmt.Sprintf("its foreign key %s refers to %s", columnNames(e.columns), word(queue[i].String()))
			queue = append(queue, t)
		}
	}
	return reached
}

// implied returns the tables without a path that resemble returns.
func (g *graph) implied(unit int) []path {
	reached := g.reaching(unit, nil)
	return slices.DeleteFunc(g.resembling(unit), func(p path) bool { return reached[p.table] != "" })
}

// resembling returns the tables that have a column without a foreign key, with the name and type of a reference to a
// table: user_id, users_id, userId.
func (g *graph) resembling(unit int) (paths []path) {
	u := g.tables[unit]
	if len(u.key) != 1 {
		return nil
	}
	full := strings.ToLower(u.Name)
	names := []string{owners.Singular(full) + "_id", owners.Singular(full) + "id", full + "_id"}
	if words := wordsOf(u.Name); len(words) > 0 {
		_, at, _ := named(words)
		names = append(names, words[at]+"_id", words[at]+"id")
	}
	if key := strings.ToLower(u.key[0]); key != "id" {
		names = append(names, key)
	}
	slices.Sort(names)
	found := map[int]bool{unit: true}
	for _, name := range slices.Compact(names) {
		for _, i := range g.columns[name] {
			t := g.tables[i]
			at := slices.IndexFunc(t.columns, func(c column) bool { return strings.ToLower(c.name) == name })
			c := t.columns[at]
			refers := slices.ContainsFunc(t.refers, func(r reference) bool { return slices.Contains(r.columns, c.name) })
			if !found[i] && !refers && alike(c.typ, u.typeOf(u.key[0])) {
				found[i] = true
				paths = append(paths, path{t.Table, c.name})
			}
		}
	}
	slices.SortFunc(paths, func(a, b path) int { return g.places[a.table] - g.places[b.table] })
	return paths
}

// alike reports whether values of two types can be equal keys.
func alike(a, b string) bool {
	both := func(types ...string) bool { return slices.Contains(types, a) && slices.Contains(types, b) }
	return a == b || both("smallint", "integer", "bigint") || both("text", "character varying", "character", "citext")
}
