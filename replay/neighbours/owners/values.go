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

// freeText is the mean length of values from which a column of text is taken for prose, in which nothing is searched.
const freeText = 100

// probe is a column, or a key of a JSON value, whose values are compared with identities.
type probe struct {
	column column
	name   string // by which it is judged: that of the column, or of the key
	path   string // as privacy.paths has it
	target *table // that its name fits, other than the unit's; nil = none
}

// counts are what was found for one probe: the number of distinct values, of rows, the mean length, and how many values
// are among those of each identity, and of the target.
type counts struct {
	Probe          int
	Distinct, Rows int64
	Length         float64
	Found          []int64
	Target         int64
}

// examine compares the values of a table with the identities.
func (s *search) examine(ctx context.Context, t *table) error {
	if len(s.identities) == 0 {
		return nil
	}
	if !t.Readable {
		s.found.Unread = append(s.found.Unread, Unread{t.Table, "", "the role may not read it: grant SELECT"})
		return nil
	}
	var probes []probe
	for _, c := range t.columns {
		kind := c.family()
		switch {
		case t.references(c.Name), t == s.unit && (c.Name == s.o.Key[0] || slices.Contains(s.found.Addresses, c.Name)):
			continue
		case kind == "":
			if why := opaque[c.Base]; why != "" {
				s.found.Unread = append(s.found.Unread, Unread{t.Table, c.Name, why})
			}
			continue
		case kind == "json" && t.Empty:
			continue
		case kind == "json":
			if err := s.unread(t, c.Name, s.json(ctx, t, c)); err != nil {
				return err
			}
			continue
		case kind == "text" && c.Width > freeText:
			s.found.Unread = append(s.found.Unread, Unread{t.Table, c.Name, "free text"})
			continue
		case kind == "number" && !c.Array && s.dull(t, c):
			continue // dense keys are found by chance
		case c.Key && kind == "number" && FitOf(c.Name, s.o.Unit.Name, s.o.Key[0]) != Named:
			continue // counted from 1, as the unit's key
		}
		p := probe{column: c, name: c.Name, path: c.Name, target: s.target(t, c)}
		if c.Array {
			p.path += "[]"
		}
		probes = append(probes, p)
	}
	if len(probes) == 0 {
		return nil
	}
	if t.Empty {
		for _, p := range probes {
			s.judge(t, p, counts{Found: make([]int64, len(s.identities))})
		}
		return nil
	}
	found, err := s.count(ctx, t, probes)
	if err != nil {
		return s.unread(t, "", err)
	}
	for i, p := range probes {
		got := counts{Found: make([]int64, len(s.identities))}
		for _, f := range found {
			if f.Probe == i {
				got = f
			}
		}
		if got.Length > freeText {
			s.found.Unread = append(s.found.Unread, Unread{t.Table, p.column.Name, "free text"})
			continue
		}
		kind, err := s.pair(ctx, t, p)
		if err = s.unread(t, p.column.Name, err); err != nil {
			return err
		}
		if !kind {
			s.judge(t, p, got)
		}
	}
	return nil
}

// dull reports whether the name of a number says that it is no key of the unit, of a person or of another table.
func (s *search) dull(t *table, c column) bool {
	return FitOf(c.Name, s.o.Unit.Name, s.o.Key[0]) == Unfit && !address(c.Name) && s.target(t, c) == nil && len(kindColumns(t, c.Name)) == 0
}

// opaque are types with contents that are not examined. Numbers, times and the like name nobody.
var opaque = map[string]string{"bytea": "bytea, perhaps encrypted", "xml": "XML", "hstore": "hstore", "tsvector": "words of a text", "ltree": "ltree"}

// target returns the table whose name a column's fits.
func (s *search) target(t *table, c column) *table {
	words := Words(c.Name)
	if c.Key || len(words) < 2 || !keys[words[len(words)-1]] || FitOf(c.Name, s.o.Unit.Name, s.o.Key[0]) == Named {
		return nil
	}
	for _, x := range s.namedBy(c.Name) {
		if x == t || x == s.unit {
			continue
		}
		for _, key := range x.columns {
			if key.Key && comparable(key, c) {
				return x
			}
		}
	}
	return nil
}

// comparable reports whether values of two columns can be equal: text holds values of any type.
func comparable(a, b column) bool {
	return a.family() == b.family() || a.family() == "text" || b.family() == "text"
}

// count runs the query over all probes of a table.
func (s *search) count(ctx context.Context, t *table, probes []probe) (found []counts, err error) {
	var plain, parts []string
	target := "false"
	for i, p := range probes {
		if p.column.Array {
			parts = append(parts, fmt.Sprintf("SELECT %d, e::text FROM s, LATERAL unnest(s.%s) e", i, ident.Quote(p.column.Name)))
		} else {
			plain = append(plain, fmt.Sprintf("(%d, s.%s::text)", i, ident.Quote(p.column.Name)))
		}
		if p.target != nil {
			for _, key := range p.target.columns {
				if key.Key {
					target = fmt.Sprintf("CASE WHEN n = %d THEN %s ELSE %s END", i, match(p.target, key), target)
				}
			}
		}
	}
	if len(plain) > 0 {
		parts = append(parts, "SELECT x.* FROM s, LATERAL (VALUES "+strings.Join(plain, ", ")+") x(n, val)")
	}
	err = s.query(ctx, func(tx pgx.Tx) (err error) {
		found, err = connect.Structs[counts](ctx, tx, "WITH s AS MATERIALIZED (SELECT * FROM "+s.sample(t)+"), v(n, val) AS ("+strings.Join(parts, " UNION ALL ")+")"+s.counting(target))
		return err
	})
	return found, err
}

// counting is the end of a query that counts the values val of probes n of v.
func (s *search) counting(target string) string {
	var all, sums []string
	joins := ""
	for i, x := range s.identities {
		if x.column.Key || x.column.Unique && x.column.Base != "citext" { // it has an index
			all = append(all, match(x.table, x.column)+"::int::int8")
		} else {
			column, value := comparison(x.column)
			joins += fmt.Sprintf(" LEFT JOIN (SELECT DISTINCT %[1]s AS v FROM %[2]s u WHERE %[1]s IN (SELECT %[3]s FROM d)) i%[4]d ON i%[4]d.v = %[3]s", column, x.table.SQL(), value, i)
			all = append(all, fmt.Sprintf("(i%d.v IS NOT NULL)::int::int8", i))
		}
		sums = append(sums, fmt.Sprintf("coalesce(sum(m[%d]), 0)::int8", i+1))
	}
	return fmt.Sprintf(`, d AS (SELECT n, val, count(*) AS rows FROM v WHERE val <> '' AND length(val) < 10000 GROUP BY n, val),
		e AS MATERIALIZED (SELECT n, rows, length(val) AS length, ARRAY[%s] AS m, %s AS target FROM d%s)
		SELECT n::int, count(*), sum(rows)::int8, (sum(length * rows) / sum(rows))::float8, ARRAY[%s], count(*) FILTER (WHERE target) FROM e GROUP BY n ORDER BY n`,
		strings.Join(all, ", "), target, joins, strings.Join(sums, ", "))
}

// match is the condition that the text val is a value of a column of a table, by an index on it if there is one.
func match(t *table, c column) string {
	shape := "true"
	switch c.family() {
	case "number":
		shape = "d.val ~ '^-?[0-9]{1,18}$'"
	case "uuid":
		shape = "d.val ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'"
	}
	column, value := comparison(c)
	return fmt.Sprintf("CASE WHEN %s THEN EXISTS (SELECT FROM %s u WHERE %s = %s) ELSE false END", shape, t.SQL(), column, value)
}

// comparison returns a column of u and the text val as they are compared.
func comparison(c column) (column, value string) {
	column, value = "u."+ident.Quote(c.Name), "d.val"
	switch {
	case c.family() == "number":
		value = "d.val::int8"
	case c.family() == "uuid":
		value = "d.val::uuid"
	case c.Base == "citext":
		return "lower(" + column + "::text)", "lower(d.val)"
	}
	return column, value
}

// judge adds a candidate for what was counted.
func (s *search) judge(t *table, p probe, n counts) {
	c := Candidate{Table: t.Table, Columns: []string{p.path}, To: s.o.Unit, Act: Act(p.name, s.o.Unit.Name), Values: n.Distinct}
	fit := FitOf(p.name, s.o.Unit.Name, s.o.Key[0])
	if rival := s.rival(t, p); rival != nil && fit < Named && !address(p.name) {
		s.toTarget(t, p, n) // its name says that it is another table's
		return
	}
	share := func(found int64) float64 { return float64(found) / float64(max(n.Distinct, 1)) }
	best := 0
	for i := range s.identities {
		if n.Found[i] > n.Found[best] && comparable(s.identities[i].column, p.column) {
			best = i
		}
	}
	id := s.identities[best]
	c.Found = n.Found[best]
	part := share(c.Found)
	named := map[Fit]string{Named: "its name is one for " + s.o.Unit.String(), Person: "its name is one for a person"}[fit]
	if !id.key {
		c.On = []string{id.column.Name}
		if named = ""; address(p.name) {
			named = "its name is one for an address"
		}
	}
	chance := id.column.family() == "number" || n.Length < 8 // short values are found by chance
	switch {
	case n.Distinct == 0 && id.key && fit == Named && id.column.family() == p.column.family() && p.path == p.column.Name:
		c.Sure = true
		c.Why = append(c.Why, "it holds no values")
	case c.Found == 0:
		s.toTarget(t, p, n)
		return
	case !id.key:
		c.Sure = address(p.name) || part >= 0.9 && c.Found >= 5 && !chance
		if !c.Sure && (part < 0.2 || c.Found < 2) {
			return
		}
	case fit == Named:
		c.Sure = (part >= 0.5 || !chance) && !marks[Words(p.name)[0]]
	case fit == Person:
		c.Sure = part >= 0.95 && (c.Found >= 2 && !s.ambiguous() || !chance)
		if part < 0.5 && chance {
			return
		}
	case !chance:
		c.Sure = part >= 0.9
	case p.column.Array && part >= 0.95 && c.Found >= 10:
		// a list of keys, though perhaps of another table's
	default: // a number whose name says nothing: dense keys are found by chance
		s.toTarget(t, p, n)
		return
	}
	if n.Distinct > 0 {
		c.Why = append([]string{s.values(part, id)}, c.Why...)
	}
	if named != "" {
		c.Why = append(c.Why, named)
	}
	if c.Act {
		c.Why = append(c.Why, "of an act: no row belongs to who did it")
	}
	s.found.Candidates = append(s.found.Candidates, c)
}

// values describes the share of the values that were found.
func (s *search) values(part float64, id identity) string {
	what := "keys of " + s.o.Unit.String()
	if !id.key {
		what = "values of its column " + id.column.Name
	}
	switch {
	case part >= 1:
		return "all examined values are " + what
	case part >= 0.01:
		return fmt.Sprintf("%.0f %% of the examined values are %s", 100*part, what)
	}
	return "some of the examined values are " + what
}

// toTarget adds a candidate for a column that holds keys of another table.
func (s *search) toTarget(t *table, p probe, n counts) {
	if p.target == nil || n.Distinct > 0 && n.Target*2 < n.Distinct {
		return
	}
	for _, key := range p.target.columns {
		if !key.Key {
			continue
		}
		c := Candidate{
			Table: t.Table, Columns: []string{p.path}, To: p.target.Table, On: []string{key.Name}, Act: Act(p.name, p.target.Name), Values: n.Distinct, Found: n.Target,
			Sure: n.Target*20 >= n.Distinct*19 && key.family() == p.column.family(), Why: []string{"it holds keys of " + p.target.String() + ", without a foreign key"},
		}
		if n.Distinct == 0 {
			c.Why = []string{"its name is one for a key of " + p.target.String() + ", and it holds no values"}
		}
		s.found.Candidates = append(s.found.Candidates, c)
	}
}

// rival returns another table of persons whose name the probe's fits.
func (s *search) rival(t *table, p probe) *table {
	for _, x := range s.namedBy(p.name) {
		if x != s.unit && x != t {
			return x
		}
	}
	return nil
}

// namedBy returns the tables whose name a column's fits as Named, those of the fewest words first: vouchers before
// basket_vouchers.
func (s *search) namedBy(column string) (all []*table) {
	if s.byWord == nil {
		s.byWord = map[string][]*table{}
		for _, t := range s.tables {
			if words := Words(t.Name); len(words) > 0 {
				last := Singular(words[len(words)-1])
				s.byWord[last] = append(s.byWord[last], t)
			}
		}
	}
	words := thing(column)
	if len(words) == 0 {
		return nil
	}
	whole := strings.Join(words, "")
	names := []string{Singular(words[len(words)-1])}
	for _, end := range []string{"id", "uid"} {
		if name, ok := strings.CutSuffix(whole, end); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		all = append(all, s.byWord[name]...)
	}
	slices.SortStableFunc(all, func(a, b *table) int { return len(Words(a.Name)) - len(Words(b.Name)) })
	return all
}

// ambiguous reports whether there are other tables of persons, with whose keys numbers can be confused.
func (s *search) ambiguous() bool {
	return slices.ContainsFunc(s.tables, func(x *table) bool {
		return x != s.unit && PersonTable(x.Name) && !slices.ContainsFunc(x.refers, func(r reference) bool { return r.To == s.o.Unit })
	})
}
