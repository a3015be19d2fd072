package units

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/session"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/shadow"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

// Mention is a column that names units, with or without a foreign key.
type Mention struct {
	source.Edge
	owners.Candidate
	Declared bool   // rows belong to units by it, or it is an act: D1 does not name the unit
	Ignored  bool   // the configuration says why it may name a removed unit
	Lines    string // of privacy.paths that declare it; "" = it is indirect
}

// Open reports whether something has to be declared about it.
func (m Mention) Open() bool { return m.Sure && !m.Declared && !m.Ignored }

// Advice returns what to write in the configuration.
func (m Mention) Advice() string {
	return "write under privacy.paths: " + m.Lines + " or, if it may name somebody who is gone: " + m.IgnoreLine()
}

// Evidence is why it is taken for a column that names units.
func (m Mention) Evidence() string { return strings.Join(m.Why, "; ") }

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

// Search searches the source for columns that name units, with names of the source.
func Search(ctx context.Context, o *spec.Options) (*owners.Found, error) {
	conn, err := session.Open(ctx, o.Source, "neighbours.source")
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read
	var found *owners.Found
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		found, err = owners.Find(ctx, tx, owners.Options{Unit: o.Unit.Table, Key: o.Unit.Key, Only: o.Protected})
		return err
	})
	return found, session.Explain(&conn.Config().Config, err)
}

// SearchCopy searches a copy of the source instead, in which what the columns of generic references mean is not known.
func SearchCopy(ctx context.Context, conn *pgx.Conn, g *source.Graph, o *spec.Options) (found *owners.Found, err error) {
	search := owners.Options{Unit: g.Unit.Table, Key: g.Key, Tables: []ident.Table{}}
	for _, r := range g.Model.Tables() {
		if len(r.Parents) == 0 {
			search.Tables = append(search.Tables, r.Table)
		}
	}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		found, err = owners.Find(ctx, tx, search)
		return err
	})
	if err != nil {
		return nil, err
	}
	named := func(t ident.Table) ident.Table { // at the source
		if i := slices.IndexFunc(o.Protected, func(p ident.Table) bool { return p.Name == t.Name }); i >= 0 {
			return o.Protected[i]
		}
		return t
	}
	for i := range found.Candidates {
		c := &found.Candidates[i]
		for j, why := range c.Why {
			c.Why[j] = strings.ReplaceAll(why, c.To.String(), named(c.To).String())
		}
		c.Table, c.To = named(c.Table), named(c.To)
	}
	for i := range found.Unread {
		found.Unread[i].Table = named(found.Unread[i].Table)
	}
	return found, nil
}

// NewMentions returns what was found as edges of a graph, whose tables have the names of the source or are in a schema
// of copies.
func NewMentions(found *owners.Found, g *source.Graph) *Mentions {
	table := func(t ident.Table) *source.Relation {
		if r := g.Model.Named(t); r != nil {
			return r
		}
		return g.Model.Named(ident.Table{Schema: g.Unit.Schema, Name: t.Name})
	}
	out := &Mentions{Unread: found.Unread}
	for _, c := range found.Candidates {
		child, parent := table(c.Table), table(c.To)
		if child == nil || parent == nil {
			continue
		}
		e, err := g.Path(spec.Path{Table: child.Table, Columns: c.Columns, To: parent.Table, On: c.On, Where: c.Where})
		if err != nil {
			continue // values of these types are never equal
		}
		out.All = append(out.All, Mention{Edge: e, Candidate: c, Declared: g.Declares(e), Ignored: g.Ignores(child, e.Columns)})
	}
	for i := range out.All {
		out.All[i].Lines = out.lines(out.All[i], !g.Configured(out.All[i].Child))
	}
	return out
}

// lines returns the line that declares a mention, and those of the foreign keys that are paths so far.
func (m *Mentions) lines(of Mention, keyed bool) string {
	lines := []string{of.Line()}
	for _, x := range m.All {
		if keyed && !of.Candidate.Act && x.Child == of.Child && x.Candidate.Keyed && !x.Candidate.Act && x.Candidate.To == of.Candidate.To && x.Declared {
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
	Paths    []string         // by which the rows belong to units
	Declared bool             // in the configuration
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
		loss := Loss{Table: r, Paths: o.Graph.Paths(r), Declared: o.Graph.Configured(r)}
		var unitNamed, otherNamed []string
		for _, x := range m.Of(r) {
			if x.Parent == o.Graph.Unit && x.Sure {
				unitNamed = append(unitNamed, o.Names(x.Edge, "c", unit))
				if !x.Candidate.Act { // who did something with a row does not say whose it is
					otherNamed = append(otherNamed, o.NamesOther(x.Edge, "c", unit))
				}
			}
		}
		only := "false"
		if len(otherNamed) > 0 {
			only = "(" + strings.Join(otherNamed, " OR ") + ") AND NOT (" + strings.Join(unitNamed, " OR ") + ")"
		}
		// A row of the unit's table (round 0) is the unit's, whomever it names.
		err = conn.QueryRow(ctx, "SELECT count(*), count(*) FILTER (WHERE o.round <> 0 AND "+only+") FROM "+o.lacking(r, unit)).Scan(&loss.Rows, &loss.Others)
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
			if err = conn.QueryRow(ctx, "SELECT "+o.left(x.Edge, unit, neighbour)).Scan(&left.Cells); err != nil {
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

// left is an expression for the number of rows of a neighbour that name a unit by an edge, without those of partitions
// and children for which its columns are ignored.
func (o Owned) left(e source.Edge, unit int, neighbour string) string {
	count := func(r *source.Relation) string {
		return "(SELECT count(*) FROM " + ident.Quote(neighbour, r.Copy) + " c WHERE " + o.Names(e, "c", unit) + ")"
	}
	m, sum := o.Graph.Model, count(e.Child)
	for _, r := range m.Tables() {
		if r == e.Child || !m.Within(r, e.Child) || !o.Graph.Ignores(r, e.Columns) || slices.ContainsFunc(r.Parents, func(p uint32) bool { return o.Graph.Ignores(m.ByOID(p), e.Columns) }) {
			continue
		}
		sum += " - " + count(r)
	}
	return sum
}

// lacking is an item of FROM with the rows c of a table, and of those below it, that a neighbour without a unit lacks.
func (o Owned) lacking(r *source.Relation, unit int) string {
	return ident.Quote(o.World, r.Copy) + " c JOIN " + o.Table + " o ON o.unit = " + strconv.Itoa(unit) + " AND o.rel = c.tableoid AND o.tid = c.ctid"
}

// AccountOf summarizes the losses of a neighbour; shared is the number of its rows that more than two units own.
func AccountOf(losses []Loss, shared int64) shadow.Account {
	a := shadow.Account{Shared: shared}
	for _, l := range losses {
		a.Others += l.Others
		if !l.Declared {
			a.Undeclared += l.Others
		}
		if l.Rows > 1 && float64(l.Rows) > shadow.LargeShare*float64(l.All) {
			a.Large = append(a.Large, l.Table.Table.String())
		}
		for _, x := range l.Left {
			if x.Sure {
				a.Names = append(a.Names, x.Column())
			}
		}
	}
	return a
}

// Judge returns what is wrong with a neighbour: columns that name the unit that it lacks, and rows of others that it
// lacks.
func Judge(losses []Loss) (faults, warnings []string) {
	var rows, others, undeclared int64
	var tables []string
	for _, l := range losses {
		rows += l.Rows
		others += l.Others
		if l.Others > 0 {
			tables = append(tables, fmt.Sprintf("%s %d of %d, by %s", l.Table.Name, l.Others, l.Rows, strings.Join(l.Paths, " and ")))
			if !l.Declared {
				undeclared += l.Others
			}
		}
		for _, x := range l.Left {
			text := fmt.Sprintf("table %s: %d cells of %s name the unit that it lacks", l.Table.Name, x.Cells, strings.Join(x.Candidate.Columns, ", "))
			if x.Sure {
				faults = append(faults, text+" ("+x.Evidence()+"): "+x.Advice())
			} else {
				warnings = append(warnings, text+", perhaps ("+x.Evidence()+"): "+x.Advice())
			}
		}
	}
	if others > 0 {
		text := fmt.Sprintf("%d of the %d rows that it lacks name only other persons (%s)", others, rows, strings.Join(tables, ", "))
		if float64(undeclared) > shadow.OthersShare*float64(rows) {
			faults = append(faults, text+": declare under privacy.paths whose rows they are, by these columns or by others")
		} else {
			warnings = append(warnings, text)
		}
	}
	return faults, warnings
}
