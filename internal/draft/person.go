package draft

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/replay/neighbours/owners"
)

// candidate is a table that may have one row for each person.
type candidate struct {
	table
	place    int // of the table
	role     role
	sure     bool   // the name of the table names nothing else
	word     string // of the name, that names persons
	own      map[kind]string
	evidence int    // of its columns
	reach    int    // the number of tables with a path to it
	deals    bool   // orders, visits or the like are among these
	paths    []path // without a foreign key
	of       string // why its rows belong to another candidate; "" = they do not
}

// strong kinds are evidence for persons in a table with another name.
var strong = []kind{password, birth, lastLogin, number}

// things are last words of tables that have such columns without one row for each person.
var things = strings.Fields(`tenant organizer organiser organization organisation company firm supplier vendor manufacturer shop store branch school hospital department team group role
	permission session token invite invitation order invoice booking reservation message mail ticket log history audit event setting config configuration server host connection source
	datasource credential domain site realm address`)

// technical columns are those of a client or an account of a program.
var technical = strings.Fields("secret clientsecret redirecturi redirecturl granttype baseurl host hostname port")

// candidateOf returns the evidence that a table has one row for each person; false if it is not enough.
func (g *graph) candidateOf(place int) (c candidate, ok bool) {
	t := g.tables[place]
	words := wordsOf(t.Name)
	c = candidate{table: t, place: place}
	at := 0
	c.role, at, c.sure = named(words)
	_, c.own = t.kinds()
	for k := range c.own {
		c.evidence += facts[k].weight
	}
	switch {
	case len(t.key) == 0:
		return c, false
	case c.role == thing:
		identified := slices.ContainsFunc(strong, func(k kind) bool { return c.own[k] != "" }) ||
			slices.Contains(t.unique, c.own[email]) || slices.Contains(t.unique, c.own[login])
		if !identified || c.evidence < 6 || len(words) > 0 && slices.Contains(things, words[at]) || t.technical() {
			return c, false
		}
		c.reached(g)
		return c, c.reach > 0
	case t.technical() && c.evidence < 5 || !c.sure && c.evidence < 2:
		return c, false
	}
	c.word, c.paths = words[at], g.resembling(place)
	c.reached(g)
	return c, true
}

// dealings are names of tables with what subjects do.
var dealings = strings.Fields("order invoice payment booking purchase sale reservation visit encounter admission treatment enrollment enrolment loan claim contract transaction rental appointment")

func (c *candidate) reached(g *graph) {
	all := g.reaching(c.place, g.implied(c.place))
	c.reach = len(all)
	for t := range all {
		c.deals = c.deals || slices.ContainsFunc(wordsOf(t.Name), func(w string) bool { return slices.Contains(dealings, w) })
	}
}

func (t table) technical() bool {
	return slices.ContainsFunc(t.columns, func(c column) bool { return slices.Contains(technical, strings.Join(wordsOf(c.name), "")) })
}

// identity has the kinds that say who somebody is.
var identity = []kind{email, password, login, firstName, lastName, fullName, birth, number}

// belongs returns the column by which the rows of a belong to those of b; "" = none. Each row of a has one of b that says
// more about the person, or a has few columns of a person: profiles, memberships, addresses.
func (g *graph) belongs(a, b candidate) string {
	if a.place == b.place || b.role == staff && a.role > staff {
		return ""
	}
	more := slices.ContainsFunc(identity, func(k kind) bool { return b.own[k] != "" && a.own[k] == "" })
	little := 2*a.evidence <= b.evidence
	refers := func(columns []string, named bool) bool {
		if acts(columns, b.Table) {
			return false
		}
		one := slices.Equal(columns, a.key) || len(columns) == 1 && slices.Contains(a.unique, columns[0])
		named = named || slices.Contains(wordsOf(strings.Join(columns, " ")), b.word)
		if a.word == b.word && len(columns) < len(a.key) && !slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(a.key, c) }) {
			return true // versions, addresses of one customer
		}
		always := !slices.ContainsFunc(a.columns, func(c column) bool { return slices.Contains(columns, c.name) && c.null })
		return (one || named) && (always && more || little)
	}
	for _, r := range a.refers {
		if r.to == b.Table && refers(r.columns, false) {
			return strings.Join(r.columns, ", ")
		}
	}
	for _, p := range b.paths {
		if p.table == a.Table && refers([]string{p.column}, true) {
			return p.column
		}
	}
	return ""
}

// rank orders candidates: those with orders, visits or enough other tables before those who may be anybody, and these
// before the staff; then by the evidence of columns, by name, and by the number of tables with a path.
func rank(all []candidate) {
	most := 0
	for _, c := range all {
		if c.role == person && c.of == "" {
			most = max(most, c.reach)
		}
	}
	tier := func(c candidate) int {
		switch {
		case c.of != "":
			return 0
		case c.role == subject && c.evidence >= 2 && (c.deals || c.reach > 0 && 4*c.reach >= most):
			return 3
		case c.role == subject || c.role == person:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(tier(b)-tier(a), b.score()-a.score(), b.reach-a.reach)
	})
}

// score is larger for a candidate with more evidence.
func (c candidate) score() int {
	score := min(c.evidence, 15) + min(bits.Len(uint(c.reach)), 6)
	if c.sure {
		score += 3
	}
	if strings.ContainsAny(c.Name, "0123456789") { // users_2024
		score--
	}
	return score
}

// reason returns the evidence for a candidate.
func (c candidate) reason() string {
	var parts []string
	if c.role != thing {
		parts = append(parts, "its name is one for persons")
	}
	var columns []string
	for k := email; k <= sex; k++ {
		if c.own[k] != "" && k != name {
			columns = append(columns, facts[k].text+" "+shown(c.own[k]))
		}
	}
	if len(columns) > 0 {
		parts = append(parts, "its columns are those of persons ("+strings.Join(columns, ", ")+")")
	}
	parts = append(parts, count(c.reach, "table has a path to it", "tables have a path to it"))
	if c.of != "" {
		parts = append(parts, c.of)
	}
	return strings.Join(parts, "; ")
}

// candidates returns the tables that may be those of persons, the best first.
func (g *graph) candidates() (all []candidate) {
	for place := range g.tables {
		if c, ok := g.candidateOf(place); ok {
			all = append(all, c)
		}
	}
	for i, a := range all {
		for _, b := range all {
			if column := g.belongs(a, b); column != "" && g.belongs(b, a) == "" {
				all[i].of = "its rows belong to " + word(b.String()) + " by " + shown(column)
				break
			}
		}
	}
	rank(all)
	return all
}

// maxNamed is the number of tables that a comment or an error names.
const maxNamed = 5

// chooseUnit returns the table of the unit, why, and the tables that were not taken: the one named, otherwise the first
// of the candidates.
func (g *graph) chooseUnit(name string) (place int, why string, others []string, err error) {
	if name != "" {
		for i, t := range g.tables {
			if t.String() == name && len(t.key) > 0 {
				return i, "it was given with --unit", nil, nil
			}
		}
		return 0, "", nil, fmt.Errorf("--unit %s: no table of this name with a primary key: write schema.table, unquoted", name)
	}
	all := g.candidates()
	if len(all) == 0 {
		return 0, "", nil, fmt.Errorf("no table looks like that of the privacy unit: none with a key has a name for persons, or columns such as e-mail address, password and birth date.%s "+
			"Give the table with one row for each person: --unit schema.table", g.lookAt())
	}
	first := all[0]
	for _, c := range all[1:] {
		if c.of == "" && c.role == first.role && c.score() == first.score() && c.reach == first.reach {
			return 0, "", nil, fmt.Errorf("two tables have equal evidence for persons: %s (%s) and %s (%s). Select one: --unit schema.table",
				word(first.String()), first.reason(), word(c.String()), c.reason())
		}
	}
	for _, c := range all[1:] {
		if len(others) < maxNamed && c.evidence+c.reach > 0 {
			others = append(others, word(c.String())+": "+c.reason())
		}
	}
	return first.place, first.reason(), others, nil
}

// lookAt names the tables whose columns are those of persons, or name some.
func (g *graph) lookAt() string {
	type found struct {
		text string
		n    int
	}
	var all []found
	for _, t := range g.tables {
		columns := t.personal()
		if role, _, sure := named(wordsOf(t.Name)); sure && role > thing && len(t.key) == 0 {
			all = append(all, found{word(t.String()) + " (it has no primary key: add one, or write privacy.unit by hand)", 100})
			continue
		}
		for _, c := range t.columns {
			sure := slices.ContainsFunc(wordsOf(c.name), func(w string) bool { r, sure := roleOf(w); return sure && r > staff })
			if sure && !owners.Act(c.name, "") && !slices.Contains(columns, c.name) {
				columns = append(columns, c.name)
			}
		}
		if len(columns) > 0 {
			all = append(all, found{word(t.String()) + " (" + columnNames(columns) + ")", len(columns)})
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b found) int { return b.n - a.n })
	var texts []string
	for _, f := range all[:min(len(all), maxNamed)] {
		texts = append(texts, f.text)
	}
	return " Look at " + strings.Join(texts, ", ") + "."
}

// columnNames returns the names of columns for a comment, not more than maxNamed.
func columnNames(names []string) string {
	var out []string
	for _, n := range names[:min(len(names), maxNamed)] {
		out = append(out, shown(n))
	}
	if more := len(names) - maxNamed; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}
