package draft

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// guess is what was found for one database.
type guess struct {
	unit      table
	why       string
	notTaken  []string // other tables of persons, with the reason
	protected []ident.Table
	reasons   []string // of protected
	paths     []path
	acts      []path        // tables that reach the unit only by a column that names who did something
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

// guessFrom guesses a configuration. name is the table of the unit; "" = it is guessed.
func guessFrom(s schema, name string) (g guess, err error) {
	all := newGraph(s)
	unit, why, notTaken, err := all.chooseUnit(name)
	if err != nil {
		return g, err
	}
	g.unit, g.why, g.notTaken = s.tables[unit], why, notTaken
	g.paths = all.implied(unit)
	reached := all.reaching(unit, g.paths)
	g.protected, g.reasons = []ident.Table{g.unit.Table}, []string{"the table of the unit"}
	referred := map[ident.Table]bool{}
	for _, t := range s.tables {
		if reached[t.Table] != "" || t.Table == g.unit.Table {
			for _, r := range t.refers {
				referred[r.to] = true
			}
		}
		if reached[t.Table] != "" {
			g.protected, g.reasons = append(g.protected, t.Table), append(g.reasons, reached[t.Table])
		}
	}
	for _, v := range s.stored {
		view, from := ident.Table{Schema: v.ViewSchema, Name: v.View}, ident.Table{Schema: v.Schema, Name: v.Name}
		if (from == g.unit.Table || reached[from] != "") && !slices.Contains(g.protected, view) {
			g.protected, g.reasons = append(g.protected, view), append(g.reasons, "a materialised view that reads "+word(from.String())+": each copy computes it anew")
		}
	}
	for _, t := range s.tables {
		if reached[t.Table] == "" && t.Table != g.unit.Table {
			g.sort(t, referred[t.Table])
		}
	}
	slices.SortStableFunc(g.personal, func(a, b personal) int { return len(b.columns) - len(a.columns) })
	g.dp, g.noise = functionsOf(s)
	g.views = noisyViews(s.calls, g.dp)
	slices.SortStableFunc(g.dp, func(a, b signature) int { return cmp.Compare(a.name, b.name) })
	return g, nil
}

// sort adds a table without a path to the unit. One with personal data is never proposed as public.
func (g *guess) sort(t table, referred bool) {
	columns := t.personal()
	for _, r := range t.refers {
		if r.to == g.unit.Table {
			g.acts = append(g.acts, path{t.Table, r.columns[0]})
			return
		}
	}
	switch {
	case len(columns) > 0:
		g.personal = append(g.personal, personal{t.Table, columns})
	case referred:
		g.public = append(g.public, t.Table)
	default:
		g.others = append(g.others, t.Table)
	}
}

// folded is the number of tables that a comment names.
const folded = 200

// writeOthers lists the tables without a path to the unit in comments: those of which somebody has to decide first.
func (g guess) writeOthers(line func(string, ...any)) {
	to := word(g.unit.String())
	if len(g.personal) > 0 {
		line("  # Personal by their columns, and without a path to the unit: queries on these are not audited. Add those whose rows belong to units to protected and paths:")
		for _, p := range g.personal {
			line("  #   - {table: %s, columns: [COLUMN], to: %s}  # %s", word(p.table.String()), to, columnNames(p.columns))
		}
	}
	if len(g.acts) > 0 {
		line("  # These refer to the unit only by who did something to a row. If the row belongs to that person, add the table to protected and the line to paths:")
		for _, p := range g.acts {
			line("  #   - {table: %s, columns: [%s], to: %s}", word(p.table.String()), word(p.column), to)
		}
	}
	if len(g.public) > 0 {
		line("  # Protected tables refer to these, and no row of them belongs to a unit. If they hold no personal data, list them, and copy them: docs/start.md, step 3.")
		line("  # public: [%s]", words(g.public))
	}
	if n := len(g.others); n > 0 {
		line("  # Neither a path to the unit nor a personal column was found in the following (%d): queries on these are not audited. If rows of them are a person's, add the table to", n)
		line("  # protected and a line to paths: {table: TABLE, columns: [COLUMN], to: %s}", to)
		text := words(g.others[:min(n, folded)])
		if n > folded {
			text += fmt.Sprintf(", and %d more", n-folded)
		}
		line("  # %s", text)
	}
}
