package draft

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// persons are names of tables that often hold one row for each person.
var persons = []string{
	"user", "person", "people", "patient", "customer", "client", "account", "member", "employee", "student", "subscriber", "participant", "respondent",
	"citizen", "individual", "subject", "household", "voter", "player", "driver", "passenger", "guest",
}

// singular returns a name without the ending of its plural: users, companies, boxes.
func singular(name string) string {
	switch {
	case strings.HasSuffix(name, "ies"):
		return strings.TrimSuffix(name, "ies") + "y"
	case strings.HasSuffix(name, "sses") || strings.HasSuffix(name, "xes"):
		return strings.TrimSuffix(name, "es")
	}
	return strings.TrimSuffix(name, "s")
}

// named reports whether the name of a table is one for persons.
func named(t ident.Table) bool {
	name := strings.ToLower(t.Name)
	return slices.Contains(persons, name) || slices.Contains(persons, singular(name))
}

// guess is what was found for one database.
type guess struct {
	unit      table
	why       string
	protected []ident.Table
	reasons   []string // of protected
	paths     []path
	public    []ident.Table // referenced by protected tables, without a path to the unit
	others    []ident.Table
	dp        []signature
	views     []ident.Table // call one of dp
	noise     []function    // may add noise; nothing says how much
}

// path says that the rows of a table belong to the unit with the same value in a column, without a foreign key.
type path struct {
	table  ident.Table
	column string
}

// reaching returns the tables with a path of foreign keys to a table, or one of paths, with the reason.
func reaching(s schema, unit ident.Table, paths []path) map[ident.Table]string {
	reached := map[ident.Table]string{}
	for _, p := range paths {
		reached[p.table] = fmt.Sprintf("its column %s looks like the key of %s; there is no foreign key", word(p.column), word(unit.String()))
	}
	for grown := true; grown; {
		grown = false
		for _, t := range s.tables {
			if t.Table == unit || reached[t.Table] != "" {
				continue
			}
			for _, r := range t.refers {
				if r.to == unit || reached[r.to] != "" {
					reached[t.Table], grown = fmt.Sprintf("its foreign key %s refers to %s", word(strings.Join(r.columns, ", ")), word(r.to.String())), true
					break
				}
			}
		}
	}
	return reached
}

// chooseUnit returns the table of the unit: the one named, otherwise among the tables with the name of persons, or
// among all that are referenced if there is none, the one that most tables have a path to.
func chooseUnit(s schema, name string) (unit table, why string, err error) {
	if name != "" {
		for _, t := range s.tables {
			if t.String() == name && len(t.key) > 0 {
				return t, "it was given with --unit", nil
			}
		}
		return unit, "", fmt.Errorf("--unit %s: no table of this name with a primary key: write schema.table, unquoted", name)
	}
	most, hinted := -1, false
	for _, t := range s.tables {
		reach, hint := len(reaching(s, t.Table, nil)), named(t.Table)
		if len(t.key) == 0 || !hint && (hinted || reach == 0) {
			continue
		}
		if hint && !hinted || reach > most {
			unit, most, hinted = t, reach, hint
		}
	}
	if most < 0 {
		return unit, "", fmt.Errorf("no table looks like that of the privacy unit: none has a primary key that foreign keys refer to, or the name of persons. " +
			"Give the table with one row for each person: --unit schema.table")
	}
	why = fmt.Sprintf("%d tables have a path of foreign keys to it", most)
	if hinted {
		why = "its name is one for persons, and " + why
	}
	return unit, why, nil
}

// implied returns the tables without a path that have a column with the name and type of a reference to the unit:
// user_id, users_id, userid.
func implied(s schema, unit table) (paths []path) {
	if len(unit.key) != 1 {
		return nil
	}
	i := slices.IndexFunc(unit.columns, func(c column) bool { return c.name == unit.key[0] })
	one := singular(strings.ToLower(unit.Name))
	names := []string{one + "_id", one + "id", strings.ToLower(unit.Name) + "_id"}
	if key := strings.ToLower(unit.key[0]); key != "id" {
		names = append(names, key)
	}
	reached := reaching(s, unit.Table, nil)
	for _, t := range s.tables {
		if t.Table == unit.Table || reached[t.Table] != "" {
			continue
		}
		for _, c := range t.columns {
			if slices.Contains(names, strings.ToLower(c.name)) && c.typ == unit.columns[i].typ {
				paths = append(paths, path{t.Table, c.name})
				break
			}
		}
	}
	return paths
}

// guessFrom guesses a configuration. name is the table of the unit; "" = it is guessed.
func guessFrom(s schema, name string) (g guess, err error) {
	if g.unit, g.why, err = chooseUnit(s, name); err != nil {
		return g, err
	}
	g.paths = implied(s, g.unit)
	reached := reaching(s, g.unit.Table, g.paths)
	referred := map[ident.Table]bool{}
	g.protected, g.reasons = []ident.Table{g.unit.Table}, []string{"the table of the unit"}
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
		switch {
		case t.Table == g.unit.Table || reached[t.Table] != "":
		case referred[t.Table]:
			g.public = append(g.public, t.Table)
		default:
			g.others = append(g.others, t.Table)
		}
	}
	g.dp, g.noise = functionsOf(s)
	g.views = noisyViews(s.calls, g.dp)
	slices.SortStableFunc(g.dp, func(a, b signature) int { return cmp.Compare(a.name, b.name) })
	return g, nil
}
