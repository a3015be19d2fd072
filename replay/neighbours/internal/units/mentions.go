package units

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

// Mention is a column that names units, with or without a foreign key.
type Mention struct {
	source.Edge
	owners.Candidate        // with the names of the source
	Declared         bool   // rows belong to units by it, or it is an act: D1 does not name the unit
	Ignored          bool   // the configuration says why it may name a removed unit
	Lines            string // of privacy.paths that declare it; "" = it is indirect
}

// Open reports whether something has to be declared about it.
func (m Mention) Open() bool { return m.Sure && !m.Declared && !m.Ignored }

// Advice returns what to write in the configuration.
func (m Mention) Advice() string {
	return "write under privacy.paths: " + m.Lines + " or, if it may name somebody who is gone: - {table: " + m.Candidate.Table.String() + ", columns: [" + strings.Join(m.Candidate.Columns, ", ") + "], ignore: REASON}"
}

// Mentions are the columns that name units, and those that were not looked at.
type Mentions struct {
	All    []Mention
	Unread []owners.Unread
}

// Of returns the mentions of a table, with its partitions and children.
func (m *Mentions) Of(r *source.Relation) (out []Mention) {
	for _, x := range m.All {
		if x.Child == r {
			out = append(out, x)
		}
	}
	return out
}

// FindMentions searches the tables of a world for columns that name units. world is "" for the source. The names in the
// result are those at the source, of Options.Protected.
func FindMentions(ctx context.Context, tx pgx.Tx, g *source.Graph, o *spec.Options, world string) (*Mentions, error) {
	place := func(r *source.Relation) ident.Table {
		if world == "" {
			return r.Table
		}
		return ident.Table{Schema: world, Name: r.Copy}
	}
	tables := map[ident.Table]*source.Relation{}
	search := owners.Options{Unit: place(g.Unit), Key: g.Key, Tables: []ident.Table{}}
	for _, r := range g.Model.Tables() {
		if len(r.Parents) == 0 || r == g.Unit {
			tables[place(r)] = r
			search.Tables = append(search.Tables, place(r))
		}
	}
	found, err := owners.Find(ctx, tx, search)
	if err != nil {
		return nil, err
	}
	named := func(t ident.Table) ident.Table { // at the source
		for _, p := range o.Protected {
			if r := tables[t]; r != nil && p.Name == r.Name {
				return p
			}
		}
		return t
	}
	out := &Mentions{}
	for _, u := range found.Unread {
		u.Table = named(u.Table)
		out.Unread = append(out.Unread, u)
	}
	for _, c := range found.Candidates {
		child, parent := tables[c.Table], tables[c.To]
		if child == nil || parent == nil {
			continue
		}
		e, err := g.Path(spec.Path{Table: child.Table, Columns: c.Columns, To: parent.Table, On: c.On, Where: c.Where})
		if err != nil {
			continue // values of these types are never equal
		}
		m := Mention{Edge: e, Candidate: c, Declared: g.Declares(e), Ignored: g.Ignores(e)}
		m.Candidate.Table, m.Candidate.To = named(c.Table), named(c.To)
		for i, why := range m.Why {
			m.Why[i] = strings.ReplaceAll(why, c.To.String(), m.Candidate.To.String())
		}
		out.All = append(out.All, m)
	}
	for i := range out.All {
		out.All[i].Lines = out.lines(out.All[i])
	}
	return out, nil
}

// lines returns the line that declares a mention, and those of the foreign keys that would no longer be paths.
func (m *Mentions) lines(of Mention) string {
	lines := []string{of.Line()}
	for _, x := range m.All {
		if !of.Candidate.Act && x.Child == of.Child && x.Candidate.Keyed && !x.Candidate.Act && x.Candidate.To == of.Candidate.To && x.Declared && !x.Edge.Declared {
			lines = append(lines, x.Line())
		}
	}
	slices.Sort(lines[1:])
	return strings.Join(slices.Compact(lines), " ")
}

// Loss is what a neighbour without a unit lacks of one table, and what it has of the unit.
type Loss struct {
	Table    *source.Relation // the topmost table
	Rows     int64            // that the neighbour lacks
	Others   int64            // of these, rows that name only other persons
	Declared bool             // the configuration declares how the rows belong to units
	Left     []Left           // columns that name the unit in the neighbour
	All      int64            // rows of D0
}

// Left is a column in which a neighbour names the unit that it lacks.
type Left struct {
	Mention
	Cells int64
}

// Losses counts what the neighbour in a schema lacks, and where it names the unit.
func (o Owned) Losses(ctx context.Context, conn *pgx.Conn, unit int, neighbour string, m *Mentions) (out []Loss, err error) {
	for _, r := range o.Graph.Model.Tables() {
		if len(r.Parents) > 0 {
			continue
		}
		loss := Loss{Table: r, Declared: o.Graph.Configured(r)}
		var unitNamed, otherNamed []string
		for _, x := range m.Of(r) {
			if x.Parent == o.Graph.Unit && x.Sure {
				unitNamed, otherNamed = append(unitNamed, o.Names(x.Edge, "c", unit)), append(otherNamed, o.NamesOther(x.Edge, "c", unit))
			}
		}
		only := "false"
		if len(unitNamed) > 0 {
			only = "(" + strings.Join(otherNamed, " OR ") + ") AND NOT (" + strings.Join(unitNamed, " OR ") + ")"
		}
		if r != o.Graph.Unit {
			err = conn.QueryRow(ctx, "SELECT count(*), count(*) FILTER (WHERE "+only+") FROM "+o.lacking(r, unit)).Scan(&loss.Rows, &loss.Others)
		} else {
			err = conn.QueryRow(ctx, "SELECT count(*) FROM "+o.lacking(r, unit)).Scan(&loss.Rows)
		}
		if err != nil {
			return nil, err
		}
		if err = conn.QueryRow(ctx, "SELECT count(*) FROM "+ident.Quote(o.World, r.Copy)).Scan(&loss.All); err != nil {
			return nil, err
		}
		for _, x := range m.Of(r) {
			if x.Parent != o.Graph.Unit || x.Ignored {
				continue
			}
			left := Left{Mention: x}
			if err = conn.QueryRow(ctx, "SELECT count(*) FROM "+ident.Quote(neighbour, r.Copy)+" c WHERE "+o.Names(x.Edge, "c", unit)).Scan(&left.Cells); err != nil {
				return nil, err
			}
			if left.Cells > 0 {
				loss.Left = append(loss.Left, left)
			}
		}
		out = append(out, loss)
	}
	return out, nil
}

// lacking is an item of FROM with the rows c of a table, and of those below it, that a neighbour without a unit lacks.
func (o Owned) lacking(r *source.Relation, unit int) string {
	return ident.Quote(o.World, r.Copy) + " c JOIN " + o.Table + " o ON o.unit = " + strconv.Itoa(unit) + " AND o.rel = c.tableoid AND o.tid = c.ctid"
}

// othersShare is the share of the rows that a neighbour lacks above which those that name only other persons are a fault.
const othersShare = 0.05

// Judge returns what is wrong with a neighbour: columns that name the unit that it lacks, and rows of others that it
// lacks.
func Judge(losses []Loss) (faults, warnings []string) {
	var rows, others, undeclared int64
	var tables []string
	for _, l := range losses {
		rows += l.Rows
		others += l.Others
		if l.Others > 0 {
			tables = append(tables, fmt.Sprintf("%s %d of %d", l.Table.Name, l.Others, l.Rows))
			if !l.Declared {
				undeclared += l.Others
			}
		}
		for _, x := range l.Left {
			text := fmt.Sprintf("table %s: %d cells of %s name the unit that it lacks", l.Table.Name, x.Cells, strings.Join(x.Candidate.Columns, ", "))
			if x.Sure {
				faults = append(faults, text+" ("+strings.Join(x.Why, "; ")+"): "+x.Advice())
			} else {
				warnings = append(warnings, text+", perhaps ("+strings.Join(x.Why, "; ")+"): "+x.Advice())
			}
		}
	}
	if others > 0 {
		text := fmt.Sprintf("%d of the %d rows that it lacks name only other persons (%s)", others, rows, strings.Join(tables, ", "))
		if float64(undeclared) > othersShare*float64(rows) {
			faults = append(faults, text+": declare under privacy.paths whose rows they are")
		} else {
			warnings = append(warnings, text)
		}
	}
	return faults, warnings
}
