package units

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// Chosen is the unit by which a neighbour differs from D0.
type Chosen struct {
	Number int      // in the work table units
	Key    []string // text form
	Why    string   // "most_rows: 812 rows"
	Rows   int64    `db:"-"` // over all tables
	Shared int64    `db:"-"` // of these, rows that more than two units own
}

// Choose selects the requested number of units by each choice in turn, skipping units that are already taken.
func Choose(ctx context.Context, w *Ownership, o *spec.Options) ([]Chosen, error) {
	total, err := w.allUnits(ctx)
	if err != nil {
		return nil, err
	}
	if total < int64(len(o.D1)) {
		return nil, fmt.Errorf("neighbours.choose requests %d units, and table %s holds %d: request fewer", len(o.D1), w.Graph.Unit.Table, total)
	}
	onlyRandom := !slices.ContainsFunc(o.Choose, func(c spec.Choice) bool { return c.Rule != spec.Random })
	if !onlyRandom { // otherwise only the rows of the chosen units are needed
		if err := w.Fill(ctx, "true"); err != nil {
			return nil, fmt.Errorf("find the rows of each unit: %w", err)
		}
	}
	var out []Chosen
	for i, c := range o.Choose {
		taken := []int{0}
		for _, u := range out {
			taken = append(taken, u.Number)
		}
		sql, err := w.Ranking(c)
		if err != nil {
			return nil, fmt.Errorf("neighbours.choose[%d]: %w", i, err)
		}
		got, err := w.rank(ctx, sql, c, taken)
		if err != nil {
			return nil, fmt.Errorf("choose units by %s: %w", c, err)
		}
		if len(got) < c.K {
			return nil, fmt.Errorf("neighbours.choose[%d]: %s finds %d units that no other choice has taken, and requests %d", i, c, len(got), c.K)
		}
		out = append(out, got...)
	}
	return out, w.keepOnly(ctx, out, onlyRandom)
}

// Ranking returns a query of (unit, text with the reason) for a rule, the best first.
func (w *Ownership) Ranking(c spec.Choice) (string, error) {
	own := w.Table("own")
	switch c.Rule {
	case spec.MostRows:
		if shared := w.shared(); shared != "" { // rows of many units are not those of one
			return `SELECT unit, count(*) || ' rows' || CASE WHEN count(*) > sum(own) THEN ', ' || count(*) - sum(own) || ' of which more than two units own' ELSE '' END AS why, ROW(sum(own), count(*)) AS worth
				FROM (SELECT unit, (n <= 2)::int AS own FROM (` + shared + `) s UNION ALL SELECT unit, 1 FROM ` + own + " WHERE NOT " + w.inShared() + ") o GROUP BY unit", nil
		}
		return "SELECT unit, count(*) || ' rows' AS why, count(*) AS worth FROM " + own + " GROUP BY unit", nil
	case spec.Random:
		return fmt.Sprintf("SELECT u.unit, 'seed %[1]d'::text AS why, hashtextextended(ROW(%[2]s)::text, %[1]d) AS worth FROM %[3]s u",
			c.Seed, ident.Each(w.Graph.Key, "u.k%[2]d", ", "), w.Table("units")), nil
	}
	if len(c.Columns) == 0 {
		return "", fmt.Errorf("rule %s needs columns, as schema.table.column", c.Rule)
	}
	r := w.Graph.Model.Named(c.Columns[0].Table)
	var names []string
	for _, column := range c.Columns {
		switch {
		case r == nil || !r.IsTable():
			return "", fmt.Errorf("%s is not a protected table", column.Table)
		case column.Table != r.Table:
			return "", fmt.Errorf("the columns of one choice must be of one table: %s and %s", r.Table, column.Table)
		case r.Column(column.Name) == nil:
			return "", fmt.Errorf("table %s has no column %q", r.Table, column.Name)
		}
		names = append(names, column.Name)
	}
	from := fmt.Sprintf("FROM %s o JOIN %s t ON t.tableoid = o.rel AND t.ctid = o.tid", own, w.in(r))
	group := ident.Each(names, "t.%[1]s", ", ")
	switch c.Rule {
	case spec.MostPartitions:
		return fmt.Sprintf("SELECT unit, count(*) || ' partitions' AS why, count(*) AS worth FROM (SELECT DISTINCT o.unit, %s %s) g GROUP BY unit", group, from), nil
	case spec.Alone:
		return fmt.Sprintf(`SELECT unit, count(*) || ' partitions' AS why, count(*) AS worth
			FROM (SELECT min(o.unit) AS unit %s GROUP BY %s HAVING min(o.unit) = max(o.unit)) g GROUP BY unit`, from, group), nil
	case spec.Largest, spec.Smallest:
		if len(names) != 1 {
			return "", fmt.Errorf("rule %s takes one column, the measure", c.Rule)
		}
		aggregate, sign := "max", ""
		if c.Rule == spec.Smallest {
			aggregate, sign = "min", "-"
		}
		kind, err := source.NumberCast(r.Column(c.Columns[0].Name))
		if err != nil {
			return "", err
		}
		// The value is personal data: it is stored with the key, and list shows it only with --reveal.
		return fmt.Sprintf("SELECT o.unit, 'value ' || %[1]s(%[2]s) AS why, %[3]s%[1]s(%[2]s%[4]s) AS worth %[5]s WHERE %[2]s IS NOT NULL GROUP BY o.unit",
			aggregate, group, sign, kind, from), nil
	}
	return "", fmt.Errorf("unknown rule %q", c.Rule)
}

// inShared returns the condition that a row of own is of a table with rows of more than two units; "" = there is none.
func (w *Ownership) inShared() string {
	var names []string
	for _, r := range w.Graph.Shared() {
		names = append(names, ident.Literal(w.in(r))+"::regclass::oid")
	}
	if names == nil {
		return ""
	}
	return "rel IN (" + strings.Join(names, ", ") + ")"
}

// shared returns a query of (unit, n): for each row of such a table the number of its units; "" = there is none.
func (w *Ownership) shared() string {
	if in := w.inShared(); in != "" {
		return "SELECT unit, count(*) OVER (PARTITION BY rel, tid) AS n FROM " + w.Table("own") + " WHERE " + in
	}
	return ""
}

// rank reads the first c.K units of a ranking that are not taken, with their keys and numbers of rows.
func (w *Ownership) rank(ctx context.Context, ranking string, c spec.Choice, taken []int) ([]Chosen, error) {
	units, err := connect.Structs[Chosen](ctx, w.Conn, fmt.Sprintf(`SELECT u.unit, ARRAY[%s], r.why
		FROM (%s) r JOIN %s u USING (unit) WHERE u.unit <> ALL($1::int[]) ORDER BY r.worth DESC, u.unit LIMIT $2`,
		ident.Each(w.Graph.Key, "u.k%[2]d::text", ", "), ranking, w.Table("units")), taken, c.K)
	for i := range units {
		units[i].Why = c.String() + ": " + units[i].Why
	}
	return units, err
}

// keepOnly reduces own to the rows of the chosen units, counts them, and writes them to the table gone, from which
// worlds are built.
func (w *Ownership) keepOnly(ctx context.Context, units []Chosen, missing bool) error {
	numbers := make([]string, len(units))
	for i, u := range units {
		numbers[i] = fmt.Sprint(u.Number)
	}
	in := "unit IN (" + strings.Join(numbers, ", ") + ")"
	if missing {
		if err := w.Fill(ctx, "u."+in); err != nil {
			return err
		}
	}
	shared := map[int]int64{}
	if query := w.shared(); query != "" && !missing {
		rows, err := connect.Structs[struct {
			Unit int
			Rows int64
		}](ctx, w.Conn, "SELECT unit, count(*) FROM ("+query+") s WHERE n > 2 AND "+in+" GROUP BY unit")
		if err != nil {
			return err
		}
		for _, r := range rows {
			shared[r.Unit] = r.Rows
		}
	}
	err := connect.Run(ctx, w.Conn,
		"CREATE UNLOGGED TABLE "+w.Table("gone")+" AS SELECT unit, rel, tid, round FROM "+w.Table("own")+" WHERE "+in,
		"DROP TABLE "+w.Table("own"),
		"CREATE INDEX ON "+w.Table("gone")+" (unit, rel, tid)",
		"VACUUM ANALYZE "+w.Table("gone"))
	for i := 0; i < len(units) && err == nil; i++ {
		units[i].Shared = shared[units[i].Number]
		units[i].Rows, err = connect.Value[int64](ctx, w.Conn, "SELECT count(*) FROM "+w.Table("gone")+" WHERE unit = $1", units[i].Number)
	}
	return err
}
