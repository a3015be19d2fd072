package body

import (
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// bodyPart is one SQL statement of a function's body, or an expression of it as a SELECT.
type bodyPart struct {
	sql      string
	dynamic  bool // an expression whose value is executed as a statement
	repeated bool // it may run more than once: in a loop, or as the query of a declared cursor
}

// plpgsqlParts splits a PL/pgSQL body into its SQL, following the grammar of pl_gram.y: an expression ends at the first
// word or sign outside parentheses that may follow it, as in PostgreSQL's own parser. It returns false if the body does
// not follow the grammar.
//
// libpg_query has a parser for PL/pgSQL too. It does not resolve types, so it rejects bodies that PostgreSQL accepts:
// OPEN of a bound cursor, INTO a field of a composite variable. Hostile bodies can also crash it.
func plpgsqlParts(body string) ([]bodyPart, bool) {
	p, ok := splitPLpgSQL(body)
	if !ok {
		return nil, false
	}
	return p.parts, true
}

// splitPLpgSQL reads a body.
func splitPLpgSQL(body string) (*plpgsqlSplitter, bool) {
	tokens, err := pgparse.Scan(body)
	if err != nil {
		return nil, false
	}
	p := &plpgsqlSplitter{tokenReader: tokenReader{body: body}, variables: map[string]bool{}}
	for _, t := range tokens {
		if start, end := int(t.GetStart()), int(t.GetEnd()); pgparse.IsComment(t) || start < 0 || end < start || end > len(body) {
			continue
		}
		p.tokens = append(p.tokens, t)
	}
	for p.sign("#") { // #option word, #variable_conflict word
		p.at += 3
	}
	p.block()
	p.accept(";")
	return p, !p.failed && p.at == len(p.tokens)
}

// plpgsqlSplitter reads a body by its grammar.
type plpgsqlSplitter struct {
	tokenReader
	depth     int // nesting depth of statements
	loops     int // nesting depth of loops
	parts     []bodyPart
	variables map[string]bool // the names that it declares, and its labels
}

// maxNestedStatements bounds the recursion.
const maxNestedStatements = 200

func (p *plpgsqlSplitter) add(sql string, dynamic bool) {
	p.parts = append(p.parts, bodyPart{sql, dynamic, p.loops > 0})
}

// named records that the token i, if it is a name, is that of a variable, a cursor or a label.
func (p *plpgsqlSplitter) named(i int) {
	if p.isName(i) {
		p.variables[p.name(i)] = true
	}
}

// repeating reads what may run more than once.
func (p *plpgsqlSplitter) repeating(read func()) {
	p.loops++
	read()
	p.loops--
}

// expression adds the expression, or list of expressions, before the first of ends.
func (p *plpgsqlSplitter) expression(ends ...string) {
	if text := p.until(ends...); text != "" {
		p.add("SELECT "+text, false)
	}
}

// dynamic adds the text after EXECUTE, up to but excluding the first of ends or USING.
func (p *plpgsqlSplitter) dynamic(ends ...string) {
	if text := p.until(append(ends, "using")...); text != "" {
		p.add("SELECT "+text, true)
		return
	}
	p.fail()
}

// block reads [<<label>>] [DECLARE ...] BEGIN ... END [label].
func (p *plpgsqlSplitter) block() {
	p.label()
	if p.accept("declare") {
		for !p.sign("begin") && p.at < len(p.tokens) {
			p.declaration()
		}
	}
	p.expect("begin")
	p.statements("end", "exception")
	if p.accept("exception") {
		for p.accept("when") {
			p.until("then") // names of error conditions
			p.expect("then")
			p.statements("when", "end")
		}
	}
	p.expect("end")
	if !p.sign(";") && p.isName(p.at) {
		p.at++
	}
}

// declaration reads one variable, alias or cursor.
func (p *plpgsqlSplitter) declaration() {
	if p.accept("declare") {
		return
	}
	if p.sign("<<") {
		p.label()
		return
	}
	if !p.isName(p.at) {
		p.fail()
		return
	}
	p.named(p.at)
	p.at++
	switch at := p.at; {
	case p.accept("alias"):
		p.until(";")
	case p.accept("no") && p.accept("scroll") && p.accept("cursor"), p.reset(at) && p.accept("scroll") && p.accept("cursor"), p.reset(at) && p.accept("cursor"):
		p.cursor()
	default:
		p.at = at
		p.variable()
	}
	p.expect(";")
}

// cursor reads [(name type, ...)] FOR query.
func (p *plpgsqlSplitter) cursor() {
	if p.accept("(") {
		for p.at < len(p.tokens) && !p.accept(")") {
			p.named(p.at)
			p.at++ // the argument's name
			p.dataType(p.until(",", ")"))
			p.accept(",")
		}
	}
	if !p.accept("for", "is") {
		p.fail()
	}
	p.repeating(func() { p.query(";") })
}

// variable reads [CONSTANT] type [COLLATE c] [NOT NULL] [:= expression].
func (p *plpgsqlSplitter) variable() {
	p.accept("constant")
	p.dataType(p.until(";", ":=", "=", "default", "not", "collate"))
	if p.accept("collate") {
		p.until(";", ":=", "=", "default", "not")
	}
	if p.accept("not") {
		p.expect("null")
	}
	if p.accept(":=", "=", "default") {
		p.expression(";")
	}
}

// dataType adds a type: as a cast, or as a query on the relation if it is the type of a relation or of one of its
// columns.
func (p *plpgsqlSplitter) dataType(text string) {
	of, kind, percent := strings.Cut(text, "%")
	kind = ident.Fold(strings.TrimSpace(kind))
	switch {
	case !percent:
		p.add("SELECT NULL::"+text, false)
		return
	case strings.HasPrefix(kind, "rowtype"):
	case strings.HasPrefix(kind, "type"):
		dot := strings.LastIndexByte(of, '.')
		if dot < 0 { // type of another variable
			return
		}
		of = of[:dot]
	default:
		p.fail()
		return
	}
	p.add("SELECT FROM "+of, false)
}

// query adds a statement that is a query, up to one of ends, or the argument of EXECUTE.
func (p *plpgsqlSplitter) query(ends ...string) {
	if p.accept("execute") {
		p.dynamic(ends...)
		if p.accept("using") {
			p.expression(ends...)
		}
		return
	}
	p.sql(ends...)
}

// sql adds a statement without the variables of INTO.
func (p *plpgsqlSplitter) sql(ends ...string) {
	from := p.at
	p.until(ends...)
	var b strings.Builder
	at := from
	for i := from; i < p.at; i++ {
		if p.text(i) != "into" || i > from && slices.Contains([]string{"insert", "merge"}, p.text(i-1)) {
			continue
		}
		b.WriteString(p.between(at, i))
		i++
		if p.text(i) == "strict" {
			i++
		}
		for i++; p.text(i) == "," || p.text(i) == "."; i++ {
			i++
		}
		at = i
		i--
	}
	b.WriteString(p.between(at, p.at))
	p.add(b.String(), false)
}
