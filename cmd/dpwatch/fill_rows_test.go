package main

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// pick returns a row of a table; of the first rows more often.
func (f *filling) pick(t *filledTable) int {
	r := f.random.Float64()
	return int(r * r * float64(len(t.rows)))
}

func (f *filling) row(t *filledTable) ([]*string, int) {
	row, owner, through := make([]*string, len(t.columns)), -1, -1
	for _, k := range t.keys {
		f.refer(t, row, k, &owner, &through)
	}
	if owner < 0 {
		owner = through
	}
	done := map[int]bool{}
	for _, pair := range t.pairs {
		f.object(t, row, pair)
		done[pair[0]], done[pair[1]] = true, true
	}
	for i, c := range t.columns {
		if row[i] == nil && t.keyed(i) == nil && !done[i] && !c.generated {
			row[i] = f.value(t, i, owner)
		}
	}
	return row, owner
}

// refer points a key of a row at a row of its table; most nullable keys are set. A key of a table in work is set by patch.
func (f *filling) refer(t *filledTable, row []*string, k *filledKey, owner, through *int) {
	nullable := slices.ContainsFunc(k.columns, func(c int) bool { return !t.columns[c].notNull })
	if k.to.state == 1 && k.to != t || len(k.to.rows) == 0 || nullable && f.random.IntN(4) == 0 {
		return
	}
	n := f.pick(k.to)
	for i, c := range k.columns {
		row[c] = k.to.rows[n][k.target[i]]
	}
	switch {
	case k.own && *owner < 0:
		*owner = n
	case k.to != f.person && *through < 0 && k.declared:
		*through = k.to.owner[n]
	}
}

// object sets a pair of a kind and a key: every third names a person.
func (f *filling) object(t *filledTable, row []*string, pair [2]int) {
	kind, to := t.columns[pair[0]], f.person
	if f.random.IntN(3) > 0 || len(kind.labels) > 0 {
		to = f.tables[f.random.IntN(len(f.tables))]
	}
	if !kind.holdsText(to.name) {
		to = f.person
	}
	label := to.name
	if k := t.keyed(pair[0]); k != nil {
		n := f.kindOf(k.to, to)
		if n < 0 {
			if n, to = f.kindOf(k.to, f.person), f.person; n < 0 && t.columns[pair[1]].notNull {
				n, to = f.pick(k.to), t
			}
		}
		if n < 0 {
			return
		}
		label = *k.to.rows[n][k.target[0]]
	} else if len(kind.labels) > 0 {
		label = kind.labels[0]
	}
	key := strconv.Itoa(1 + f.random.IntN(500))
	if p := to.primary(); p >= 0 && len(to.rows) > 0 && (to.columns[p].kind == t.columns[pair[1]].kind || isText(t.columns[pair[1]].kind)) {
		key = *to.rows[f.pick(to)][p]
	} else if t.columns[pair[1]].kind == "uuid" {
		key = digest(t.name, f.random.IntN(500))
	}
	row[pair[0]], row[pair[1]] = &label, &key
}

// kindOf is the row of a table of kinds (content types) that stands for a table, or -1.
func (f *filling) kindOf(kinds, to *filledTable) int {
	app, model := kinds.column("app_label"), kinds.column("model")
	return slices.IndexFunc(kinds.rows, func(row []*string) bool {
		return app >= 0 && model >= 0 && *row[app]+"_"+*row[model] == to.name
	})
}

// patch sets the keys whose table was in work when their rows were drawn.
func (f *filling) patch() {
	for _, t := range f.tables {
		for _, k := range t.keys {
			for n := t.old; n < len(t.rows); n++ {
				if row := t.rows[n]; row[k.columns[0]] == nil && len(k.to.rows) > 0 && (t.columns[k.columns[0]].notNull || f.random.IntN(2) == 0) &&
					!slices.ContainsFunc(t.unique, func(u []int) bool { return slices.Contains(u, k.columns[0]) }) {
					owner, through := t.owner[n], -1
					f.refer(t, row, k, &owner, &through)
				}
			}
		}
	}
}

// holding is the first text column with a name of a kind, or -1.
func (t *filledTable) holding(name *regexp.Regexp) int {
	return slices.IndexFunc(t.columns, func(c *filledColumn) bool { return name.MatchString(c.name) && isText(c.kind) })
}

func quoted(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// holdsText reports whether a text is not too long for the type of a column.
func (c *filledColumn) holdsText(text string) bool { return c.length == 0 || len(text) <= c.length }

func isText(kind string) bool {
	return kind == "text" || strings.HasPrefix(kind, "character") || kind == "citext"
}

func digest(parts ...any) string {
	h := fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(parts...))))
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

var given, family = strings.Fields("Ann Ben Cleo Dan Eva Finn Gina Hugo Ines Jon"), strings.Fields("Berg Cole Diaz Endo Ford Gray Hall Ito Jung Kerr")

// value draws a value that fits the type and the name of a column.
func (f *filling) value(t *filledTable, i, owner int) *string {
	c, n := t.columns[i], len(t.rows)
	alone := t.alone(i)
	if !c.notNull && !alone && t != f.person && f.random.IntN(10) == 0 || strings.Contains(c.name, "deleted") && !c.notNull {
		return nil
	}
	text := func(format string, args ...any) *string {
		s := fmt.Sprintf(format, args...)
		if kind := c.kind; strings.HasPrefix(kind, "character") && c.length > 0 && len(s) > c.length {
			if s = s[len(s)-c.length:]; alone {
				s = strconv.FormatInt(int64(n)+36*36, 36)
				s = s[max(0, len(s)-c.length):]
			}
		}
		return &s
	}
	number := f.random.IntN(60)
	if alone || i == t.primary() {
		number = n + 1
		for _, row := range t.rows[:t.old] {
			if row[i] != nil {
				old, _ := strconv.Atoi(*row[i])
				number = max(number, old+n+1)
			}
		}
	}
	switch {
	case len(c.labels) > 0:
		return text("%s", c.labels[f.random.IntN(len(c.labels))])
	case c.holds == "array":
		return text("{%s,%s}", *f.person.rows[f.pick(f.person)][f.person.primary()], *f.person.rows[f.pick(f.person)][f.person.primary()])
	case c.holds == "json":
		return text(`{"%s_id": "%s", "n": %d}`, f.person.name, *f.person.rows[f.pick(f.person)][f.person.primary()], number)
	case strings.HasSuffix(c.kind, "[]"):
		return text("{}")
	case isText(c.kind):
		return f.text(t, i, owner, alone, text)
	}
	switch c.kind {
	case "smallint", "integer", "bigint":
		return text("%d", number)
	case "numeric", "real", "double precision", "money":
		return text("%d.%d", number, f.random.IntN(10))
	case "boolean":
		return text("%t", f.random.IntN(2) == 0)
	case "uuid":
		return text("%s", digest(t.name, c.name, n))
	case "date":
		return text("%d-%02d-%02d", 1950+f.random.IntN(60), 1+f.random.IntN(12), 1+f.random.IntN(28))
	case "timestamp with time zone", "timestamp without time zone":
		return text("2026-%02d-%02d %02d:%02d:00", 1+f.random.IntN(9), 1+f.random.IntN(28), f.random.IntN(24), f.random.IntN(60))
	case "time without time zone", "time with time zone":
		return text("%02d:%02d:00", f.random.IntN(24), f.random.IntN(60))
	case "interval":
		return text("%d minutes", number)
	case "json", "jsonb":
		return text(`{"n": %d}`, number)
	case "inet", "cidr":
		return text("10.0.%d.%d", f.random.IntN(200), f.random.IntN(200))
	case "bytea":
		return text(`\x%04x`, number)
	case "tsvector", "ltree", "xml", "hstore":
		return text("")
	}
	return nil
}

// text draws a text by the name of its column: addresses, logins and phones are those of the row's owner or of a person.
func (f *filling) text(t *filledTable, i, owner int, alone bool, text func(string, ...any) *string) *string {
	c, n := t.columns[i], len(t.rows)
	for _, same := range []*regexp.Regexp{emails, logins, phones} {
		if !same.MatchString(c.name) {
			continue
		}
		if by := f.person.holding(same); t != f.person && !alone && by >= 0 && len(f.person.rows) > 0 && (owner >= 0 || f.random.IntN(2) == 0) {
			if owner < 0 {
				owner = f.pick(f.person)
			}
			return f.person.rows[owner][by]
		}
		login := strings.ToLower(given[n%10]) + "." + t.name[:1] + strconv.Itoa(n)
		return text([]string{"%[1]s@example.com", "%[1]s", "+1555%07[2]d"}[slices.Index([]*regexp.Regexp{emails, logins, phones}, same)], login, n)
	}
	switch {
	case i == t.primary():
		return text("%s_%s", t.name[:min(4, len(t.name))], strings.ReplaceAll(digest(t.name, n), "-", ""))
	case alone, slices.ContainsFunc(t.unique, func(u []int) bool { return slices.Contains(u, i) }), c.name == "path":
		return text("%s-%d", c.name, n)
	case c.name == "first_name":
		return text("%s", given[f.random.IntN(10)])
	case c.name == "last_name":
		return text("%s", family[f.random.IntN(10)])
	}
	return text("%s %c", strings.ReplaceAll(c.name, "_", " "), 'a'+rune(f.random.IntN(5)))
}
