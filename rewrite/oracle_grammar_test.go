package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// grammar generates queries top-down from the grammar, with types and names in scope, while generator fills templates
// of one column: joins and their aliases, functions in FROM, whole rows, aggregates and windows, SQL/XML and JSON,
// strings in every spelling. A query depends on no order and is not random, unless it is refused.
type grammar struct {
	rng      *rand.Rand
	database string
	n        int               // number of names so far
	ctes     []source          // in scope, the innermost last
	levels   [][]field         // columns in scope, of each enclosing query, the innermost last
	used     []map[string]bool // names in FROM, of each enclosing query
	traps    int               // one expression in traps must be refused, or keep its meaning nevertheless
}

// field is a column for expressions.
type field struct{ sql, kind string } // kind: int, text, row

// source is a relation for FROM.
type source struct {
	name    string // as written in FROM
	bare    string // unqualified name
	refer   string // qualifier of its columns without an alias
	columns []field
}

func columns(spec string) []field {
	var all []field
	for part := range strings.SplitSeq(spec, ",") {
		name, kind, _ := strings.Cut(part, ":")
		all = append(all, field{name, kind})
	}
	return all
}

// stored returns one of the relations of the oracle's worlds, in several spellings.
func (g *grammar) stored() source {
	users, transactions := columns("id:int,name:text,user_id:int"), columns("id:int,user_id:int,store_id:int")
	all := []source{
		{"users", "users", "users", users},
		{"Users", "users", `"users"`, users},
		{`"users"`, "users", "USERS", users},
		{"public.users", "users", "public.users", users},
		{g.database + ".public.users", "users", g.database + ".public.users", users},
		{"public . /* . */ \"users\"", "users", "users", users},
		{`U&"\0075sers"`, "users", `U&"\+000075sers"`, users},
		{`U&"!0075sers" UESCAPE '!'`, "users", "users", users},
		{`public.U&"us\0065rs"`, "users", `U&"p\0075blic".users`, users},
		{"transactions", "transactions", "transactions", transactions},
		{"public.transactions", "transactions", "public.transactions", transactions},
		{"\"public\".\"transactions\" *", "transactions", "transactions", transactions},
		{"ONLY users", "users", "users", users},
		{"ONLY (public.transactions)", "transactions", "public.transactions", transactions},
		{"stores", "stores", "public.stores", columns("id:int,city:text")},
		{"ref.users", "users", "ref.users", columns("id:int,spent:int")},
		{"public.user_list", "user_list", "user_list", columns("id:int")},
		{"events", "events", "public.events", columns("id:int")},
		{"public.events_1", "events_1", "events_1", columns("id:int")},
		{`app."Order Lines"`, "Order Lines", `app."Order Lines"`, columns("id:int")},
		{`"Order Lines"`, "Order Lines", `"Order Lines"`, columns("id:int")},
		{`"Named Users"`, "Named Users", `public."Named Users"`, columns("id:int,name:text")},
		{`kids."Minor Users"`, "Minor Users", `kids."Minor Users"`, users},
	}
	return all[g.rng.IntN(len(all))]
}

func (g *grammar) one(in int) bool { return g.rng.IntN(in) == 0 }

func (g *grammar) pick(options ...string) string { return options[g.rng.IntN(len(options))] }

func (g *grammar) fresh() string {
	g.n++
	if g.one(5) {
		return fmt.Sprintf(`"A %d"`, g.n)
	}
	return fmt.Sprintf("a%d", g.n)
}

// from returns an item of FROM and the columns that it adds to the scope.
func (g *grammar) from(depth int) (string, []field) {
	if depth > 0 && g.one(3) {
		return g.join(depth)
	}
	if depth > 0 && g.one(3) {
		return g.derived(depth)
	}
	s := g.stored()
	if len(g.ctes) > 0 && !g.one(3) {
		s = g.ctes[g.rng.IntN(len(g.ctes))]
	}
	switch {
	case g.one(2) && g.free(s.bare): // no alias
		return s.name, qualify(s.refer, s.columns)
	case g.one(4) && !strings.HasPrefix(s.name, "ONLY"):
		alias := g.fresh()
		names, renamed := []string{}, []field{}
		for _, c := range s.columns {
			name := g.fresh()
			names, renamed = append(names, name), append(renamed, field{name, c.kind})
		}
		return s.name + " AS " + alias + "(" + strings.Join(names, ", ") + ")", qualify(alias, renamed)
	}
	alias := g.pick("users", "stores", `"public"`)
	if g.one(2) || !g.free(strings.Trim(alias, `"`)) {
		alias = g.fresh()
	}
	return s.name + g.pick(" ", " AS ") + alias, qualify(alias, s.columns)
}

// free reports whether a name is unused in FROM, and reserves it.
func (g *grammar) free(name string) bool {
	used := g.used[len(g.used)-1]
	before := used[name]
	used[name] = true
	return !before
}

// qualify puts a qualifier before columns, and adds the whole row.
func qualify(name string, cols []field) []field {
	all := []field{{name, "row"}}
	for _, c := range cols {
		all = append(all, field{name + "." + c.sql, c.kind})
	}
	if strings.Contains(name, ".") { // a whole row has no schema qualifier
		return all[1:]
	}
	return all
}

func (g *grammar) derived(depth int) (string, []field) {
	alias := g.fresh()
	switch g.rng.IntN(8) {
	case 0:
		query, cols := g.query(depth-1, g.kinds())
		return "(" + query + ") AS " + alias, qualify(alias, cols)
	case 1:
		query, cols := g.query(depth-1, g.kinds())
		return "LATERAL (" + query + ") " + alias, qualify(alias, cols)
	case 2:
		return fmt.Sprintf("ROWS FROM (generate_series(1, %s), jsonb_to_recordset('[{\"p\":1,\"q\":\"users\"},{\"p\":3}]') AS (p int, q text)) WITH ORDINALITY AS %s(s, p, q, o)", g.small(), alias),
			qualify(alias, columns("s:int,p:int,q:text"))
	case 3:
		return "json_to_recordset(" + g.quoted(`[{"a":1,"b":"users"},{"a":2,"b":"x"}]`) + "::json) AS " + alias + `("a" pg_catalog.int4, b character varying(3))`, qualify(alias, columns("a:int,b:text"))
	case 4:
		return fmt.Sprintf("(VALUES (%s, %s), (2, 'users')) AS %s (v, w)", g.small(), g.text(0), alias), qualify(alias, columns("v:int,w:text"))
	case 5:
		return fmt.Sprintf("XMLTABLE('/r/i' PASSING (SELECT xmlelement(NAME r, xmlagg(xmlelement(NAME i, z.id) ORDER BY z.id)) FROM %s AS z) COLUMNS o FOR ORDINALITY, id int PATH '.', t text DEFAULT 'users') AS %s",
			g.pick("users", "public.transactions", "stores"), alias), qualify(alias, columns("o:int,id:int,t:text"))
	case 6:
		return "unnest(ARRAY[1, 2, " + g.small() + "], ARRAY['a', 'users']) WITH ORDINALITY " + alias + "(x, y, z)", qualify(alias, columns("x:int,y:text"))
	}
	return "public.of_age(" + g.small() + ") AS " + alias, qualify(alias, columns("id:int"))
}

// join returns joined relations, whose columns an alias of the whole may hide.
func (g *grammar) join(depth int) (string, []field) {
	left, l := g.from(depth - 1)
	g.levels[len(g.levels)-1] = append(g.levels[len(g.levels)-1], l...) // for LATERAL
	right, r := g.from(depth - 1)
	g.levels[len(g.levels)-1] = g.levels[len(g.levels)-1][:len(g.levels[len(g.levels)-1])-len(l)]
	both := slices.Concat(l, r)
	shared := func(cols []field) bool {
		return slices.ContainsFunc(cols, func(c field) bool { return strings.HasSuffix(c.sql, ".id") })
	}
	kind := g.pick("JOIN", "LEFT JOIN", "INNER JOIN", "FULL OUTER JOIN", "RIGHT JOIN")
	if strings.Contains(right, "LATERAL") || strings.Contains(right, "ROWS FROM") {
		kind = g.pick("JOIN", "LEFT JOIN")
	}
	switch {
	case g.one(4):
		return left + " CROSS JOIN " + right, both
	case shared(l) && shared(r) && g.one(3):
		alias := g.fresh()
		return left + " " + kind + " " + right + " USING (id) AS " + alias, append(both, field{alias + ".id", "int"})
	case shared(l) && shared(r) && g.one(3):
		alias := g.fresh()
		return "(" + left + " " + kind + " " + right + " USING (id)) AS " + alias, []field{{alias + ".id", "int"}, {alias, "row"}}
	case g.one(5):
		return left + " NATURAL " + g.pick("JOIN", "LEFT JOIN", "FULL JOIN") + " " + right, both
	}
	on := "true"
	li, ri := ints(l), ints(r)
	if len(li) > 0 && len(ri) > 0 {
		on = li[g.rng.IntN(len(li))].sql + g.pick(" = ", " OPERATOR(pg_catalog.=) ") + ri[g.rng.IntN(len(ri))].sql
	} else if strings.HasPrefix(kind, "FULL") {
		kind = "JOIN"
	}
	return "(" + left + " " + kind + " " + right + " ON " + on + ")", both
}

func ints(cols []field) []field {
	return slices.DeleteFunc(slices.Clone(cols), func(c field) bool { return c.kind != "int" })
}

func (g *grammar) kinds() []string {
	kinds := make([]string, 1+g.rng.IntN(3))
	for i := range kinds {
		kinds[i] = g.pick("int", "int", "text")
	}
	return kinds
}

// query returns a query with columns of these kinds, with the names in the returned fields.
func (g *grammar) query(depth int, kinds []string) (string, []field) {
	before := len(g.ctes)
	with := ""
	if depth > 0 && g.one(3) {
		with = g.with(depth)
	}
	body, cols := g.body(depth, kinds)
	g.ctes = g.ctes[:before]
	return with + body, cols
}

// with returns a WITH clause; its names shadow tables.
func (g *grammar) with(depth int) string {
	recursive := g.one(3)
	var clauses []string
	names := []string{"users", "transactions", "stores", `"Order Lines"`, "user_list", `"Named Users"`, "of_age", "id"}
	g.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+g.rng.IntN(2)] {
		if recursive && g.one(2) {
			start, _ := g.query(depth-1, []string{"int"})
			extra := g.pick("", "", " SEARCH BREADTH FIRST BY c SET o", " CYCLE c SET k USING p", ` SEARCH DEPTH FIRST BY c SET "users" CYCLE c SET k TO 1 DEFAULT 0 USING p`)
			union := "UNION ALL"
			if extra == "" {
				union = "UNION"
			}
			clauses = append(clauses, fmt.Sprintf("%s(c) AS (SELECT min(s.%s) FROM (%s) AS s(%s) %s SELECT r.c + 1 FROM %s AS r WHERE r.c < 5)%s", name, "c", start, "c", union, name, extra))
			g.ctes = append(g.ctes, source{name, strings.Trim(name, `"`), name, columns("c:int")})
			continue
		}
		query, cols := g.query(depth-1, g.kinds())
		clauses = append(clauses, name+" AS "+g.pick("", "MATERIALIZED ", "NOT MATERIALIZED ")+"("+query+")")
		g.ctes = append(g.ctes, source{name, strings.Trim(name, `"`), name, cols})
	}
	if recursive {
		return "WITH RECURSIVE " + strings.Join(clauses, ", ") + " "
	}
	return "WITH " + strings.Join(clauses, ", ") + " "
}

// body returns a query without WITH.
func (g *grammar) body(depth int, kinds []string) (string, []field) {
	if depth > 0 && g.one(6) {
		left, cols := g.query(depth-1, kinds)
		right, _ := g.query(depth-1, kinds)
		return "(" + left + ") " + g.pick("UNION", "UNION ALL", "EXCEPT", "INTERSECT ALL") + " (" + right + ")", cols
	}
	g.levels, g.used = append(g.levels, nil), append(g.used, map[string]bool{})
	defer func() { g.levels, g.used = g.levels[:len(g.levels)-1], g.used[:len(g.used)-1] }()
	from, cols := g.from(depth)
	if g.one(4) {
		g.levels[len(g.levels)-1] = cols
		more, others := g.from(depth - 1)
		from, cols = from+", "+more, slices.Concat(cols, others)
	}
	g.levels[len(g.levels)-1] = cols
	where := ""
	if g.one(2) {
		where = " WHERE " + g.condition(depth)
	}
	switch g.rng.IntN(5) {
	case 0:
		return g.grouped(depth, kinds, from, where)
	case 1:
		return g.windowed(depth, kinds, from, where)
	}
	targets, out := g.targets(kinds, func(kind string) string { return g.expression(depth, kind) })
	distinct, order := "", ""
	if g.one(5) {
		distinct = "DISTINCT "
	}
	if g.one(3) {
		order = " ORDER BY " + g.positions(len(kinds)) + g.pick("", " LIMIT "+g.small(), " OFFSET 1", " FETCH FIRST "+g.small()+" ROWS WITH TIES")
	}
	return "SELECT " + distinct + targets + " FROM " + from + where + order, out
}

// positions returns an ORDER BY of all columns, so that LIMIT selects the same rows everywhere.
func (g *grammar) positions(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i+1)+g.pick("", " DESC", " NULLS FIRST", " USING OPERATOR(pg_catalog.<)", " USING >"))
	}
	return strings.Join(all, ", ")
}

func (g *grammar) targets(kinds []string, expression func(kind string) string) (string, []field) {
	var targets []string
	var out []field
	for _, kind := range kinds {
		name := g.fresh()
		if g.one(4) && !slices.Contains(out, field{"id", "int"}) && kind == "int" {
			name = "id"
		}
		targets = append(targets, expression(kind)+" AS "+name)
		out = append(out, field{name, kind})
	}
	return strings.Join(targets, ", "), out
}

// grouped returns a query that aggregates by expressions of the columns in scope.
func (g *grammar) grouped(depth int, kinds []string, from, where string) (string, []field) {
	key, other := g.expression(0, "int"), g.expression(0, "text")
	aggregate := func(kind string) string {
		filter := g.pick("", "", " FILTER (WHERE "+g.condition(0)+")")
		if kind == "text" {
			return g.pick("string_agg("+g.expression(0, "text")+" COLLATE \"C\", ',' ORDER BY 1 - 1, "+g.expression(0, "text")+" COLLATE pg_catalog.\"C\")"+filter,
				"max("+g.expression(0, "text")+")"+filter, "mode() WITHIN GROUP (ORDER BY "+key+" USING OPERATOR(pg_catalog.<))"+filter+"::text", "xmlagg(xmlelement(NAME e, "+key+") ORDER BY "+key+")::text")
		}
		return g.pick("count(*)::int", "sum("+key+")::int"+"", "(count(DISTINCT "+other+")"+filter+")::int", "max("+g.expression(depth-1, "int")+")", "coalesce(cardinality(array_agg("+key+")"+filter+"), -1)",
			"(percentile_disc(0.5) WITHIN GROUP (ORDER BY "+key+")"+filter+")", "tallied("+key+")", "grouping("+key+")")
	}
	targets, out := g.targets(kinds, aggregate)
	group := " GROUP BY " + g.pick("GROUPING SETS (("+key+"), ())", "ROLLUP ("+key+", "+other+")", "CUBE ("+key+")", "DISTINCT GROUPING SETS (("+key+"), ("+key+"))", key+", "+other, key)
	if !strings.Contains(group, key) {
		group = " GROUP BY " + key
	}
	return "SELECT " + targets + " FROM " + from + where + group + g.pick("", "", " HAVING count(*) > "+g.small()+" % 3"), out
}

// windowed returns a query with window functions that do not depend on the order among equals.
func (g *grammar) windowed(_ int, kinds []string, from, where string) (string, []field) {
	key := g.expression(0, "int")
	window := "PARTITION BY " + g.expression(0, "int") + " % 3 ORDER BY " + key
	frame := g.pick("", " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP", " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES", " RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING")
	targets, out := g.targets(kinds, func(kind string) string {
		over := g.pick("OVER w", "OVER (w)", "OVER ("+window+frame+")")
		e := g.pick("(sum("+key+") ", "(count(*) FILTER (WHERE "+g.condition(0)+") ", "(dense_rank() ", "(max("+key+") ") + over + ")::int"
		if kind == "text" {
			return e + "::text"
		}
		return e
	})
	return "SELECT " + targets + " FROM " + from + where + " WINDOW w AS (" + window + ")", out
}

// column returns a visible column of a kind, usually of the innermost query; "" = none.
func (g *grammar) column(kind string) string {
	for i := len(g.levels) - 1; i >= 0; i-- {
		var fits []string
		for _, c := range g.levels[i] {
			if c.kind == kind {
				fits = append(fits, c.sql)
			}
		}
		if len(fits) > 0 && (i == 0 || !g.one(4)) {
			return fits[g.rng.IntN(len(fits))]
		}
	}
	return ""
}

func (g *grammar) small() string { return fmt.Sprint(1 + g.rng.IntN(5)) }

// quoted returns a string in one of its spellings.
func (g *grammar) quoted(s string) string {
	plain := strings.ReplaceAll(s, "'", "''")
	middle := len(s) / 2
	spellings := []string{"'" + plain + "'", "$$" + s + "$$", "$x$" + s + "$x$", "E'" + plain + "'", "U&'" + strings.Replace(plain, "u", `\0075`, 1) + "'"}
	if plain == s {
		spellings = append(spellings, "'"+s[:middle]+"'\n '"+s[middle:]+"'") // libpg_query does not accept a comment between the two
	}
	return g.pick(spellings...)
}

func (g *grammar) text(depth int) string {
	if c := g.column("text"); c != "" && g.one(2) {
		return c
	}
	if row := g.column("row"); row != "" && g.one(4) {
		return g.pick("("+row+"::text)", "(row_to_json("+row+")::text)", "format('%s', "+row+")", "(to_jsonb("+row+") ->> 'id')", "((ROW("+row+".*, 1))::text)", "(jsonb_populate_record("+row+", '{\"id\":3}')::text)")
	}
	if depth <= 0 {
		return g.quoted(g.pick("users", "public.users", "u1", "{users}", "c1", "transactions")) + "::text"
	}
	switch g.rng.IntN(9) {
	case 0:
		return "(" + g.text(depth-1) + " || " + g.text(depth-1) + ")"
	case 1:
		query, _ := g.query(depth-1, []string{"text"})
		return "(SELECT max(s.t) FROM (" + query + ") AS s(t))"
	case 2:
		return "json_build_object(" + g.quoted("users") + ", " + g.number(depth-1) + ")::text"
	case 3:
		return "xmlserialize(CONTENT xmlforest(" + g.number(depth-1) + " AS users, " + g.text(0) + " AS t) AS text)"
	case 4:
		return "CASE " + g.number(depth-1) + " WHEN 1 THEN " + g.text(depth-1) + " ELSE " + g.quoted("users") + " END"
	case 5:
		return "overlay(" + g.text(depth-1) + " PLACING 'x' FROM 1 FOR 1)"
	case 6:
		return "upper(pg_catalog.substring(" + g.text(depth-1) + ", 1, 4) COLLATE \"C\")"
	case 7:
		return "CAST(" + g.number(depth-1) + " AS character varying(10))::text"
	}
	return g.pick("(jsonb_build_array("+g.text(depth-1)+") ->> 0)", "coalesce(NULLIF("+g.text(depth-1)+", 'u1'), 'users')", "'users'::regtype::text", "'integer'::regtype::text",
		"('low'::public.user_kind)::text", "(ROW('users')::public.address).city", "array_to_string(ARRAY["+g.text(0)+", 'b']::text[], ',')")
}

func (g *grammar) number(depth int) string {
	if c := g.column("int"); c != "" && (depth <= 0 || g.one(2)) {
		return c
	}
	if row := g.column("row"); row != "" && g.one(4) {
		return g.pick("num_nonnulls("+row+")", "length("+row+"::text)", "(CASE WHEN "+row+" IS NULL THEN 1 ELSE 2 END)", "length((("+row+"))::text)")
	}
	if depth <= 0 {
		return g.small()
	}
	switch g.rng.IntN(10) {
	case 0:
		return "(" + g.number(depth-1) + g.pick(" + ", " - ", " OPERATOR(pg_catalog.*) ") + g.number(depth-1) + ")"
	case 1:
		query, _ := g.query(depth-1, []string{"int"})
		return "(SELECT " + g.pick("max", "min", "count") + "(s.t)::int FROM (" + query + ") AS s(t))"
	case 2:
		query, _ := g.query(depth-1, []string{"int"})
		return "cardinality(ARRAY(" + query + "))"
	case 3:
		return "CASE WHEN " + g.condition(depth-1) + " THEN " + g.number(depth-1) + " ELSE " + g.number(depth-1) + " END"
	case 4:
		return "length(" + g.text(depth-1) + ")"
	case 5:
		return "public.older(" + g.number(depth-1) + ")"
	case 6:
		return "greatest(" + g.number(depth-1) + ", " + g.number(depth-1) + ", NULL)"
	case 7:
		return "(ARRAY[" + g.number(depth-1) + ", 7])[1:2][1]"
	case 8:
		return "extract(day FROM DATE '2020-01-07' + " + g.number(0) + ")::int"
	}
	return g.pick("headcount()", "util.bucket("+g.number(0)+" * 10)", "coalesce("+g.number(depth-1)+", 0)", "('{\"users\":[1,2]}'::jsonb #>> '{users,1}')::int", "abs(-"+g.number(0)+")", "CAST("+g.number(0)+" AS public.tally_no)::int")
}

func (g *grammar) condition(depth int) string {
	switch g.rng.IntN(9) {
	case 0:
		return g.number(depth) + " BETWEEN SYMMETRIC " + g.number(0) + " AND " + g.small()
	case 1:
		return "(" + g.number(depth) + ", " + g.text(0) + ") IS DISTINCT FROM ROW(" + g.small() + ", 'users')"
	case 2:
		if depth <= 0 {
			break
		}
		query, _ := g.query(depth-1, []string{"int"})
		return g.number(0) + g.pick(" IN (", " = ANY (", " <> ALL (", " OPERATOR(pg_catalog.<) ANY (") + query + ")"
	case 3:
		if depth <= 0 {
			break
		}
		query, _ := g.query(depth-1, g.kinds())
		return g.pick("EXISTS (", "NOT EXISTS (") + query + ")"
	case 4:
		return g.text(depth) + g.pick(" LIKE 'u%'", " ~ '^[a-z]'", " SIMILAR TO 'u_' ESCAPE '!'", " IS NOT NULL", " NOT ILIKE '%S'")
	case 5:
		return g.number(depth) + " = ANY (ARRAY[1, 2, " + g.small() + "])"
	case 6:
		return "(" + g.condition(depth-1) + g.pick(" AND ", " OR NOT ") + g.condition(depth-1) + ")"
	}
	return g.number(depth) + g.pick(" < ", " >= ", " <> ", " OPERATOR(pg_catalog.=) ") + g.number(depth-1)
}

// expression returns an expression of a kind, or a trap.
func (g *grammar) expression(depth int, kind string) string {
	if g.traps > 0 && g.one(g.traps) {
		name := g.quoted(g.pick("users", "public.users", "transactions", "id"))
		trap := g.pick(name+"::regclass", "to_regclass("+name+")", "("+name+"::text).to_regclass", "CAST("+name+" AS pg_catalog.regclass)", "'{users}'::_regclass", "regclass "+name, "to_regtype("+name+")",
			"NULL::users", "NULL::public.users[]", "pg_relation_size("+name+")", "pg_typeof(1)", "current_query()", "query_to_xml("+g.quoted("SELECT * FROM users")+", true, false, '')",
			"table_to_xml("+name+"::regclass, true, false, '')", "has_table_privilege("+name+", 'SELECT')", "ts_stat("+g.quoted("SELECT 'a'::tsvector")+")", "currtid2("+name+", '(0,1)')", "nextval("+name+")",
			"name_of("+name+")", "@@? "+name+"", name+"::public.rel_name", "biggest(VARIADIC ARRAY[1])", "pg_get_viewdef("+name+")", "array_send(ARRAY[1])", "current_schema()", "current_user", "CURRENT_ROLE",
			"set_config('search_path', "+name+", true)", "(SELECT c.relname FROM pg_class c LIMIT 1)", "ctid", "users.tableoid", "(SELECT count(*) FROM information_schema.tables)")
		return "length((" + trap + ")::text)" + map[string]string{"int": "", "text": "::text"}[kind]
	}
	if kind == "text" {
		return g.text(depth)
	}
	return g.number(depth)
}

// written returns n distinct queries for one seed.
func written(n int, seed uint64, database string, traps int) []capture.Query {
	g := &grammar{rng: rand.New(rand.NewPCG(seed, 5)), database: `"` + database + `"`, traps: traps}
	seen := map[string]bool{}
	var queries []capture.Query
	for len(queries) < n {
		g.n, g.ctes, g.levels, g.used = 0, nil, nil, nil
		depth := 1 + g.rng.IntN(2)
		if g.one(10) {
			depth = 3 // takes long
		}
		sql, _ := g.query(depth, g.kinds())
		if seen[sql] || len(sql) > 5000 {
			continue
		}
		seen[sql] = true
		path := g.pick("public, app", "public, app", `"$user", public, app`, `app, "public"`, "public, app, pg_catalog", "pg_temp, public, app", "ref, public, app", `"No Such", public, app, information_schema`)
		queries = append(queries, capture.Query{SQL: sql, User: "alice", Database: database, Settings: map[string]string{"search_path": path}})
	}
	return queries
}
