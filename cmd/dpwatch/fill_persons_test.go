package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// naming is a column whose values name persons. Own ones say whose the row is; acts do not. The others are second
// owners: objects, arrays and JSON.
type naming struct {
	table, column string
	by            int // the column of the person that it holds
	own, act      bool
	sql           string // the condition, with %s for the value
	values        func(row []*string) []string
}

// collect lists the columns that name persons.
func (f *filling) collect() {
	p := f.person.primary()
	for _, t := range f.tables {
		name := func(column, by int, own, act bool, sql string, values func(cell string, row []*string) []string) {
			f.names = append(f.names, naming{t.name, t.columns[column].name, by, own && t != f.person, act, fmt.Sprintf(sql, quoted(t.columns[column].name)), func(row []*string) []string {
				if row[column] == nil {
					return nil
				}
				return values(*row[column], row)
			}})
		}
		whole := func(cell string, _ []*string) []string { return []string{cell} }
		for _, k := range t.keys {
			if k.to == f.person {
				name(k.columns[0], k.target[0], k.own, !k.own && !either.MatchString(t.columns[k.columns[0]].name), "%s::text = %%s", whole)
			}
		}
		if t == f.person {
			continue
		}
		for _, pair := range t.pairs {
			labels := []string{f.person.name}
			if k := t.keyed(pair[0]); k != nil {
				n := f.kindOf(k.to, f.person)
				if n < 0 {
					continue
				}
				labels[0] = *k.to.rows[n][k.target[0]]
			} else {
				for _, same := range f.tables { // whose keys are the persons'
					if i := same.primary(); i >= 0 && same.keyed(i) != nil && same.keyed(i).to == f.person {
						labels = append(labels, same.name)
					}
				}
			}
			where := fmt.Sprintf("%s::text IN ('%s') AND ", quoted(t.columns[pair[0]].name), strings.Join(labels, "', '"))
			name(pair[1], p, false, false, where+"%s::text = %%s", func(cell string, row []*string) []string {
				if row[pair[0]] == nil || !slices.Contains(labels, *row[pair[0]]) {
					return nil
				}
				return []string{cell}
			})
		}
		for i, c := range t.columns {
			switch c.holds {
			case "array":
				name(i, p, false, false, "%%s = ANY (%s::text[])", func(cell string, _ []*string) []string { return strings.Split(strings.Trim(cell, "{}"), ",") })
			case "json":
				name(i, p, false, false, "%s->>'"+f.person.name+"_id' = %%s", func(cell string, _ []*string) []string { return strings.Split(cell, `"`)[3:4] })
			}
			for n, same := range []*regexp.Regexp{emails, logins, phones} {
				if by := f.person.holding(same); by >= 0 && same.MatchString(c.name) && isText(c.kind) && !t.alone(i) {
					name(i, by, n == 0, false, "%s::text = %%s", whole)
				}
			}
		}
	}
}

func (f *filling) of(table *filledTable) (all []naming) {
	for _, n := range f.names {
		if n.table == table.name {
			all = append(all, n)
		}
	}
	return all
}

// belongs lists the persons of each row of each table: those that a column of its own or a pair names, or an act that
// cannot be NULL; where a table has no column of its own, also those of the rows that its keys refer to.
func (f *filling) belongs() map[*filledTable][]map[int]bool {
	all, known := map[*filledTable][]map[int]bool{}, map[string]int{}
	for n, row := range f.person.rows {
		for by, value := range row {
			if value != nil {
				known[strconv.Itoa(by)+" "+*value] = n
			}
		}
	}
	own := map[*filledTable]bool{f.person: true}
	for _, t := range f.tables {
		all[t] = make([]map[int]bool, len(t.rows))
		for n := range t.rows {
			if all[t][n] = map[int]bool{}; t == f.person {
				all[t][n][n] = true
			}
		}
		for _, name := range f.of(t) {
			own[t] = own[t] || name.own
			for n, row := range t.rows {
				for _, value := range name.values(row) {
					if person, ok := known[strconv.Itoa(name.by)+" "+value]; ok && (!name.act || t.columns[t.column(name.column)].notNull) {
						all[t][n][person] = true
					}
				}
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, t := range f.tables {
			for _, k := range t.keys {
				if own[t] || k.to == f.person {
					continue
				}
				parents := map[string]map[int]bool{}
				for n, row := range k.to.rows {
					parents[tuple(row, k.target)] = all[k.to][n]
				}
				for n, row := range t.rows {
					for person := range parents[tuple(row, k.columns)] {
						changed = changed || !all[t][n][person]
						all[t][n][person] = true
					}
				}
			}
		}
	}
	return all
}

// tuple is the text of some columns of a row; of none if one is NULL.
func tuple(row []*string, columns []int) (text string) {
	for _, c := range columns {
		if row[c] == nil {
			return ""
		}
		text += "\x00" + *row[c]
	}
	return text
}

// query is a number that a table is asked for, in which @ stands for the schema, and the most that it changes if the
// rows of one person are missing.
type query struct {
	sql  string
	most float64
}

// queries are a count, a sum and a count of distinct persons of a table, and the most that they change together, each
// in units of its own most.
func (f *filling) queries(t *filledTable, belongs []map[int]bool) (all []query, together float64) {
	name := quoted(t.name)
	number := slices.IndexFunc(t.columns, func(c *filledColumn) bool {
		i := t.column(c.name)
		return slices.Contains([]string{"integer", "bigint", "smallint", "numeric"}, c.kind) && t.keyed(i) == nil && i != t.primary() && !c.generated &&
			!slices.ContainsFunc(t.pairs, func(p [2]int) bool { return p[1] == i })
	})
	named := slices.IndexFunc(f.names, func(n naming) bool {
		return n.table == t.name && n.own && strings.HasPrefix(n.sql, quoted(n.column)+"::text =")
	})
	changes := []map[int]float64{{}, {}, {}}
	rows, lost := map[string]int{}, map[string]int{}
	distinct := -1
	all = append(all, query{sql: "SELECT count(*) FROM @." + name})
	if number >= 0 {
		all = append(all, query{sql: fmt.Sprintf("SELECT COALESCE(sum(trunc(LEAST(GREATEST(%s, 0), 50))), 0) FROM @.%s", quoted(t.columns[number].name), name)})
	}
	if named >= 0 {
		distinct = t.column(f.names[named].column)
		all = append(all, query{sql: fmt.Sprintf("SELECT count(DISTINCT %s) FROM @.%s", quoted(f.names[named].column), name)})
		for _, row := range t.rows {
			rows[tuple(row, []int{distinct})]++
		}
	}
	for n, row := range t.rows {
		for person := range belongs[n] {
			changes[0][person]++
			if number >= 0 && row[number] != nil {
				value, _ := strconv.ParseFloat(*row[number], 64)
				changes[1][person] += math.Trunc(min(max(value, 0), 50))
			}
			if distinct >= 0 && row[distinct] != nil {
				value := tuple(row, []int{distinct})
				key := strconv.Itoa(person) + value
				if lost[key]++; lost[key] == rows[value] {
					changes[len(all)-1][person]++
				}
			}
		}
	}
	for i := range all {
		for _, change := range changes[i] {
			all[i].most = max(all[i].most, change)
		}
	}
	for person := range changes[0] {
		sum := 0.0
		for i, q := range all {
			sum += changes[i][person] / max(q.most, 1)
		}
		together = max(together, sum)
	}
	return all, together
}
