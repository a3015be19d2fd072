package draft

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

// guess is what was found for one database.
type guess struct {
	unit      table
	why       string
	notTaken  []string // other tables of persons, with the reason
	protected []ident.Table
	reasons   []string           // of protected
	paths     []owners.Candidate // lines of privacy.paths
	maybe     []owners.Candidate // such lines that somebody has to look at
	unread    []owners.Unread
	personal  []personal    // tables without a path
	public    []ident.Table // referenced by protected tables, without a path to the unit
	others    []ident.Table
	dp        []signature
	views     []ident.Table // call one of dp
	noise     []function    // may add noise; nothing says how much
}

// personal is a table with columns of persons.
type personal struct {
	table   ident.Table
	columns []string
}

// guessFrom guesses a configuration for a unit. found are the columns of the database that name it.
func (g *graph) guessFrom(unit int, found *owners.Found) guess {
	out := guess{unit: g.tables[unit], unread: found.Unread}
	reached := g.pathsOf(unit, found, &out)
	out.protected, out.reasons = []ident.Table{out.unit.Table}, []string{"the table of the unit"}
	referred := map[ident.Table]bool{}
	for _, t := range g.tables {
		if reached[t.Table] != "" || t.Table == out.unit.Table {
			for _, r := range t.refers {
				referred[r.to] = true
			}
		}
		if reached[t.Table] != "" {
			out.protected, out.reasons = append(out.protected, t.Table), append(out.reasons, reached[t.Table])
		}
	}
	for _, v := range g.stored {
		view, from := ident.Table{Schema: v.ViewSchema, Name: v.View}, ident.Table{Schema: v.Schema, Name: v.Name}
		if (from == out.unit.Table || reached[from] != "") && !slices.Contains(out.protected, view) {
			out.protected, out.reasons = append(out.protected, view), append(out.reasons, "a materialised view that reads "+word(from.String())+": each copy computes it anew")
		}
	}
	for _, t := range g.tables {
		if reached[t.Table] == "" && t.Table != out.unit.Table {
			out.sort(t, referred[t.Table])
		}
	}
	slices.SortStableFunc(out.personal, func(a, b personal) int { return len(b.columns) - len(a.columns) })
	out.dp, out.noise = functionsOf(g.schema)
	out.views = noisyViews(g.calls, out.dp)
	slices.SortStableFunc(out.dp, func(a, b signature) int { return cmp.Compare(a.name, b.name) })
	return out
}

// pathsOf sets the lines of paths, and returns the tables whose rows belong to units, with the reason. A line replaces
// the foreign keys of its table as paths: those that still are paths become lines as well.
func (g *graph) pathsOf(unit int, found *owners.Found, out *guess) map[ident.Table]string {
	u := g.tables[unit].Table
	var own []path
	reached, taken := g.reaching(unit, nil), map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, c := range found.Candidates {
			_, known := g.places[c.Table]
			if known && sure(c, u) && !c.Keyed && !c.Act && c.Table != u && !taken[c.Line()] && (c.To == u || reached[c.To] != "") {
				taken[c.Line()], grown = true, true
				own = append(own, path{c.Table, c.Columns[0]})
			}
		}
		if grown {
			reached = g.reaching(unit, own)
		}
	}
	named := map[ident.Table]bool{}
	for _, t := range g.tables {
		var lines, keys []owners.Candidate
		for _, c := range found.Of(t.Table) {
			named[t.Table] = true
			switch {
			case t.Table == u && c.Keyed: // a foreign key of the unit's own table is no path, without a line
			case t.Table == u && sure(c, u):
				c.Act = true
				out.paths = append(out.paths, c)
			case c.Keyed && !c.Act:
				keys = append(keys, c)
			case reached[t.Table] == "" && c.Act: // the only path would be one of an act: who decides may take it
				c.Act, c.Why = false, append(c.Why, "of an act: no row belongs to who did it")
				out.maybe = append(out.maybe, c)
			case c.Keyed:
			case sure(c, u) && c.Act:
				out.paths = append(out.paths, c)
			case taken[c.Line()]:
				lines = append(lines, c)
			default:
				out.maybe = append(out.maybe, c)
			}
		}
		if len(lines) > 0 && !slices.ContainsFunc(slices.Concat(lines, keys), func(c owners.Candidate) bool { return c.To == u }) {
			keys = g.keysOf(t, reached)
		}
		if len(lines) > 0 {
			out.paths = append(append(out.paths, keys...), lines...)
		}
	}
	for _, p := range g.implied(unit) {
		if reached[p.table] == "" && !named[p.table] {
			out.maybe = append(out.maybe, owners.Candidate{Table: p.table, Columns: []string{p.column}, To: u, Why: []string{"its name is one for a key of " + word(u.String()) + "; its values are none, or were not read"}})
		}
	}
	return reached
}

// sure reports whether a candidate is a line of paths that nobody has to decide. A column that holds no values may hold
// the keys of any table that has such a name.
func sure(c owners.Candidate, unit ident.Table) bool {
	return c.Sure && (c.To == unit || c.Values > 0)
}

// keysOf returns the foreign keys of a table by which its rows belong to those of others.
func (g *graph) keysOf(t table, reached map[ident.Table]string) (keys []owners.Candidate) {
	for _, r := range t.refers {
		if reached[r.to] != "" && r.to != t.Table && !acts(r.columns, r.to) {
			keys = append(keys, owners.Candidate{Table: t.Table, Columns: r.columns, To: r.to, On: r.on, Keyed: true, Why: []string{"a foreign key"}})
		}
	}
	return keys
}

// sort adds a table without a path to the unit. One with personal data is never proposed as public.
func (g *guess) sort(t table, referred bool) {
	columns := t.personal()
	switch {
	case slices.ContainsFunc(g.maybe, func(c owners.Candidate) bool { return c.Table == t.Table }): // it has a line already
	case len(columns) > 0:
		g.personal = append(g.personal, personal{t.Table, columns})
	case referred:
		g.public = append(g.public, t.Table)
	default:
		g.others = append(g.others, t.Table)
	}
}

// The numbers of lines and of names that comments have.
const (
	maxLines = 100
	maxNames = 200
)

// writePaths writes the lines of paths, and those that somebody has to decide.
func (g guess) writePaths(line func(string, ...any)) {
	if len(g.paths) > 0 {
		line("  paths:  # columns that name a person without a foreign key. The foreign keys of a table with a line are no paths, unless they are lines too")
		for _, c := range g.paths {
			line("    %s  # %s", c.Line(), comment(strings.Join(c.Why, "; ")))
		}
	}
	if len(g.maybe) > 0 {
		line("  # Columns that may name a person. If a row belongs to that person, add the line to paths, and the table to protected; otherwise `ignore: REASON` instead of `to`:")
	}
	for _, c := range g.maybe[:min(len(g.maybe), maxLines)] {
		line("  #   %s  # %s", c.Line(), comment(strings.Join(c.Why, "; ")))
	}
	if more := len(g.maybe) - maxLines; more > 0 {
		line("  #   and %d more: dpwatch neighbours create --plan", more)
	}
}

// writeOthers lists the tables without a path to the unit in comments: first those of which somebody has to decide.
func (g guess) writeOthers(line func(string, ...any)) {
	to := word(g.unit.String())
	if len(g.personal) > 0 {
		line("  # Personal by their columns, and without a path to the unit: queries on these are not audited. If rows belong to units, add the table to protected and a line to paths:")
	}
	for _, p := range g.personal[:min(len(g.personal), maxLines)] {
		line("  #   - {table: %s, columns: [COLUMN], to: %s}  # %s", word(p.table.String()), to, columnNames(p.columns))
	}
	if more := len(g.personal) - maxLines; more > 0 {
		line("  #   and %d more", more)
	}
	if len(g.public) > 0 {
		line("  # Protected tables refer to these, and no row of them belongs to a unit. If they hold no personal data, list them, and copy them: docs/start.md, step 3.")
		line("  # public: [%s]", words(g.public))
	}
	folded := func(names []string) string {
		if more := len(names) - maxNames; more > 0 {
			return strings.Join(names[:maxNames], ", ") + ", and " + count(more, "more", "more")
		}
		return strings.Join(names, ", ")
	}
	if len(g.others) > 0 {
		line("  # Without a path and without a personal column, and not audited (%s): %s", count(len(g.others), "table", "tables"), folded(tableNames(g.others)))
	}
	unread := map[string][]string{}
	for _, u := range g.unread {
		name := u.Table.String()
		if u.Column != "" {
			name += "." + u.Column
		}
		unread[u.Why] = append(unread[u.Why], word(name))
	}
	for _, why := range slices.Sorted(maps.Keys(unread)) {
		line("  # Not searched for persons: %s (%d): %s", comment(why), len(unread[why]), folded(unread[why]))
	}
}
