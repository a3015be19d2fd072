package sqltext

import "strings"

// Name is a name in a statement at a place where only a relation, a function, a type or an operator can be named.
type Name struct {
	Text   string // as written, without the quotes around it and without a schema
	Quoted bool
	Temp   bool // in a temporary schema
}

// Limits of a NameReader.
const (
	maxNesting   = 64 // levels of parentheses
	maxWithNames = 16 // WITH queries that are visible
)

// NameReader returns the names in a text, in one pass that allocates nothing. It has no grammar: a name is what follows
// FROM, JOIN, INTO, UPDATE, TABLE, USING or a comma of a FROM list, precedes a parenthesis or a string, or follows :: or
// AS in a CAST; and every operator is one. Columns, aliases and the names of WITH queries are not returned, because they
// stand elsewhere, and neither are keywords. Names in strings and comments are not read. Use NewNameReader.
type NameReader struct {
	// Unsure is set if the text may have names that are not returned.
	Unsure bool
	// Defines is set if a statement begins with CREATE, ALTER, IMPORT, SECURITY LABEL or DO, which can change what names
	// mean.
	Defines bool

	tokens
	command string // the first word of the statement; "" = at its beginning
	skip    bool   // the rest of the statement names nothing that it runs
	expect  expected
	before  lastToken
	opens   nestingKind // of the next parenthesis
	prev    string      // the keyword before; "" = another token
	depth   int
	nesting [maxNesting]nesting
	with    [maxWithNames]withName
	named   int // of with
}

// expected is what the next word is.
type expected uint8

const (
	anything expected = iota
	relation
	source // after USING: a relation, unless a parenthesis follows
	typeName
	withQuery
	alias
)

// lastToken is the kind of the token before.
type lastToken uint8

const (
	afterOther lastToken = iota
	afterName
	afterParenthesis
)

// nestingKind says what commas, FROM and AS mean between two parentheses.
type nestingKind uint8

const (
	plain     nestingKind = iota
	fromList              // commas separate relations
	castOf                // AS precedes a type
	arguments             // FROM belongs to a function: extract(year FROM x)
)

type nesting struct {
	kind      nestingKind
	condition bool // of a join in the FROM list
	with      bool // in the list of a WITH clause
}

type withName struct {
	Name
	depth int
}

// NewNameReader returns a reader of a text, which may hold several statements.
func NewNameReader(sql string) NameReader {
	var r NameReader
	r.sql = sql
	r.advance()
	return r
}

// Next returns the next name; false at the end.
func (r *NameReader) Next() (Name, bool) {
	for r.tok.kind != end {
		if r.skip && !r.isSymbol(';') {
			r.advance()
			continue
		}
		if n, ok := r.read(); ok {
			return n, true
		}
	}
	return Name{}, false
}

// read reads one token, or a name of several.
func (r *NameReader) read() (Name, bool) {
	switch r.tok.kind {
	case word, quoted:
		return r.word()
	case symbol:
		return r.symbol()
	case escaped:
		r.Unsure = r.Unsure || r.sql[r.tok.start+2] == '"'
	}
	r.after(afterOther)
	r.advance()
	return Name{}, false
}

// after records what was read, which ends what was expected.
func (r *NameReader) after(t lastToken) { r.before, r.prev, r.expect, r.opens = t, "", anything, plain }

// word reads a keyword or a name.
func (r *NameReader) word() (Name, bool) {
	t, single := r.tok, true
	n := r.part()
	for r.isSymbol('.') {
		schema := n
		r.advance()
		if r.tok.kind != word && r.tok.kind != quoted {
			r.after(afterOther) // x.*
			return Name{}, false
		}
		n, single = r.part(), false
		n.Temp = len(schema.Text) >= len("pg_temp") && strings.EqualFold(schema.Text[:len("pg_temp")], "pg_temp")
	}
	if single && t.kind == word && r.keyword(r.sql[t.start:t.end]) {
		return Name{}, false
	}
	expect, before, prev, l := r.expect, r.before, r.prev, r.level()
	r.after(afterName)
	switch {
	case expect == withQuery:
		r.query(n)
	case expect == relation, expect == source:
		return n, !single || !r.isWith(n)
	case expect == typeName:
		return n, true
	case expect == alias:
		r.before = afterOther
	case r.isSymbol('('):
		if l.kind == fromList && !l.condition && before != afterOther { // an alias with columns
			r.before = afterOther
			return Name{}, false
		}
		return n, !isOneOf(prev, "execute")
	case r.tok.kind == str:
		return n, true
	}
	return Name{}, false
}

// part reads one identifier.
func (r *NameReader) part() Name {
	n := Name{Text: r.text()}
	if r.tok.kind == quoted {
		n.Quoted = true
		n.Text = strings.TrimSuffix(n.Text[1:], `"`)
	}
	r.advance()
	return n
}

func (r *NameReader) level() *nesting { return &r.nesting[min(r.depth, maxNesting-1)] }

// query reads the name of a WITH query, if it is one: timestamp WITH TIME ZONE has none.
func (r *NameReader) query(n Name) {
	switch l := r.level(); {
	case !r.is("as") && !r.isSymbol('('):
		l.with, r.prev = false, n.Text
	case r.named == maxWithNames:
		r.Unsure = true
	default:
		l.with = true
		r.with[r.named] = withName{n, r.depth}
		r.named++
	}
	r.before = afterOther
}

// isWith reports whether a name without a schema is that of a WITH query.
func (r *NameReader) isWith(n Name) bool {
	for _, w := range r.with[:r.named] {
		if w.Text == n.Text && w.Quoted == n.Quoted || !w.Quoted && !n.Quoted && strings.EqualFold(w.Text, n.Text) {
			return true
		}
	}
	return false
}

// symbol reads punctuation or an operator.
func (r *NameReader) symbol() (Name, bool) {
	switch c := r.sql[r.tok.start]; c {
	case '(':
		r.open()
	case ')':
		r.close()
	case ',':
		r.after(afterOther)
		switch l := r.level(); {
		case l.kind == fromList:
			r.expect, l.condition = relation, false
		case l.with:
			r.expect = withQuery
		}
	case ';':
		r.after(afterOther)
		r.command, r.skip, r.depth, r.named, r.nesting[0] = "", false, 0, 0, nesting{}
	case ':':
		r.after(afterOther)
		switch {
		case strings.HasPrefix(r.sql[r.tok.end:], ":"):
			r.advance()
			r.expect = typeName
		case strings.HasPrefix(r.sql[r.tok.end:], "="): // f(x := 1)
			r.advance()
		}
	default:
		if isOperator(c) {
			return r.operator()
		}
		r.after(afterOther)
	}
	r.advance()
	return Name{}, false
}

// open begins a level of parentheses.
func (r *NameReader) open() {
	in, expect := nesting{kind: r.opens}, anything
	switch r.expect {
	case relation: // FROM (a JOIN b ...), unless SELECT follows
		in.kind, expect = fromList, relation
	case withQuery: // WITH (options)
		r.level().with = false
	}
	r.after(afterOther)
	if r.depth++; r.depth >= maxNesting {
		r.Unsure = true
		return
	}
	r.nesting[r.depth], r.expect = in, expect
}

// close ends a level of parentheses, with its WITH queries.
func (r *NameReader) close() {
	r.depth = max(0, r.depth-1)
	for r.named > 0 && r.with[r.named-1].depth > r.depth {
		r.named--
	}
	r.after(afterParenthesis)
}

// operator reads an operator by the rules of scan.l: of several characters it ends in + or - only if it has one of
// ~!@#%^&|`?.
func (r *NameReader) operator() (Name, bool) {
	start := r.tok.start
	at, special := start, false
	for at < len(r.sql) && isOperator(r.sql[at]) && !strings.HasPrefix(r.sql[at:], "--") && !strings.HasPrefix(r.sql[at:], "/*") {
		special = special || strings.IndexByte("~!@#%^&|`?", r.sql[at]) >= 0
		at++
	}
	for !special && at > start+1 && (r.sql[at-1] == '+' || r.sql[at-1] == '-') {
		at--
	}
	n := Name{Text: r.sql[start:at], Quoted: true}
	if n.Text == "!=" {
		n.Text = "<>"
	}
	star := n.Text == "*" && r.before == afterOther // count(*)
	r.pos = at
	r.after(afterOther)
	r.advance()
	return n, n.Text != "=>" && !star // f(x => 1)
}
