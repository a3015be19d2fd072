package sqltext

import "strings"

// Limits bounds a text before a recursive parser reads it. The zero value accepts everything.
type Limits struct {
	Tokens   int // tokens, without comments
	Depth    int // estimated depth of the syntax tree; that of libpg_query can be up to 8 times as deep: see Check
	Comments int // nesting depth of comments
	// Operators limits the operator characters and comment openings in a row. PostgreSQL's scanner rescans the whole
	// run for each operator that it takes from its front.
	Operators int
}

// Excess is the limit that a text exceeds.
type Excess struct {
	What   string // "too many tokens"
	Offset int    // in bytes, where the limit is exceeded
}

// Values of Excess.What.
const (
	ExcessTokens    = "too many tokens"
	ExcessDepth     = "nested too deeply, or too many operators in one expression"
	ExcessComments  = "too many comments within comments"
	ExcessOperators = "too many operator characters in a row"
)

// Check scans sql once and returns the first limit that it exceeds, or nil. It takes O(len(sql)) time and
// O(Limits.Depth) memory, or O(len(sql)) memory if Depth is 0.
//
// The depth of an expression is that of its deepest operand plus one for each operator, because a chain of n operators
// is a tree of n levels. A comma, AND, OR, WHEN, THEN, ELSE, SELECT, ON, WHERE and HAVING begin a new expression.
// Parentheses, brackets and CASE hold one or several expressions and add one level. Joins, set operations and BETWEEN
// add to the depth of the parentheses around them. The estimate is never less than an eighth of the depth of
// libpg_query's tree, which has up to eight messages for one level; it can be more.
func Check(sql string, l Limits) *Excess {
	m := meter{lexer: lexer{sql: sql}, limits: l, levels: []level{{}}}
	for m.excess == nil {
		from := m.pos
		t := m.next()
		m.gap(from, t.start)
		if t.kind == end {
			break
		}
		m.count(t)
	}
	if m.excess == nil {
		for len(m.levels) > 1 {
			m.close(len(sql))
		}
		m.finish(&m.levels[0], len(sql))
	}
	return m.excess
}

// level is an open parenthesis, bracket or CASE, or the whole statement.
type level struct {
	open    byte // '(', '[', 'c' for CASE, 0 for the statement
	chain   int  // operators of the current expression
	operand int  // depth of its deepest operand
	deepest int  // depth of the deepest expression so far
	links   int  // joins, set operations and BETWEEN
}

func (l *level) expression() {
	l.deepest = max(l.deepest, l.chain+l.operand)
	l.chain, l.operand = 0, 0
}

// meter is the state of Check.
type meter struct {
	lexer
	limits Limits
	levels []level
	tokens int
	run    int
	bodies int // BEGIN ATOMIC
	last   token
	excess *Excess
}

func (m *meter) exceed(value, limit int, what string, at int) {
	if limit > 0 && value > limit && m.excess == nil {
		m.excess = &Excess{What: what, Offset: at}
	}
}

// gap checks the text between two tokens: the nesting depth of comments, and the comment openings in a run of operator
// characters. Whitespace and -- comments end a run.
func (m *meter) gap(from, to int) {
	depth := 0
	for i := from; i < to && m.excess == nil; i++ {
		c := m.sql[i]
		next := byte(0)
		if i+1 < to {
			next = m.sql[i+1]
		}
		switch {
		case c == '/' && next == '*':
			depth++
			m.run++
			m.exceed(depth, m.limits.Comments, ExcessComments, i)
			m.exceed(m.run, m.limits.Operators, ExcessOperators, i)
			i++
		case depth > 0 && c == '*' && next == '/':
			depth--
			i++
		case depth == 0 && c == '-' && next == '-':
			i += lineLength(m.sql[i:to])
			m.run = 0
		case !isOperator(c):
			m.run = 0
		}
	}
}

// count processes one token.
func (m *meter) count(t token) {
	m.tokens++
	m.exceed(m.tokens, m.limits.Tokens, ExcessTokens, t.start)
	c := m.sql[t.start]
	if t.kind != symbol || !isOperator(c) {
		m.run = 0
	}
	switch t.kind {
	case word:
		m.keyword(t)
	case symbol:
		m.symbol(t, c)
	}
	m.last = t
}

func (m *meter) symbol(t token, c byte) {
	top := &m.levels[len(m.levels)-1]
	switch {
	case c == '(' || c == '[':
		m.open(c, t.start)
	case c == ')' || c == ']':
		for len(m.levels) > 1 && m.levels[len(m.levels)-1].open == 'c' { // a CASE without END is invalid
			m.close(t.start)
		}
		if len(m.levels) > 1 {
			m.close(t.start)
		}
	case c == ',':
		top.expression()
	case c == ';' && len(m.levels) == 1:
		m.finish(top, t.start)
		*top = level{}
	case c == ':':
		if !m.adjacent(t) || m.sql[m.last.start] != ':' { // :: is one operator
			top.chain++
		}
	case isOperator(c):
		m.run++
		m.exceed(m.run, m.limits.Operators, ExcessOperators, t.start)
		// Of the characters of a longer operator, only + and - can be separate operators.
		if (!m.adjacent(t) || !isOperator(m.sql[m.last.start]) || c == '+' || c == '-') && !(c == '*' && m.star()) {
			top.chain++
		}
	}
}

// adjacent reports whether a token directly follows the last one, a symbol.
func (m *meter) adjacent(t token) bool {
	return m.last.kind == symbol && m.last.end == t.start
}

// star reports whether a * after the last token means all columns: no operand precedes it.
func (m *meter) star() bool {
	switch m.last.kind {
	case symbol:
		return strings.IndexByte("(,.", m.sql[m.last.start]) >= 0
	case word:
		return m.lastWord("select")
	}
	return false
}

func (m *meter) lastWord(w string) bool {
	return m.last.kind == word && strings.EqualFold(m.sql[m.last.start:m.last.end], w)
}

// keyword processes a word. A word after a dot is a name, never a keyword. A word after AS is also taken as a name,
// which does not lower the estimate. Only reserved words can end an expression here: any other word can be a column
// name in the middle of one.
func (m *meter) keyword(t token) {
	if m.last.kind == symbol && m.sql[m.last.start] == '.' || m.lastWord("as") {
		return
	}
	w := m.sql[t.start:t.end]
	if len(w) > len("intersect") {
		return
	}
	var buffer [len("intersect")]byte
	for i := range len(w) {
		buffer[i] = w[i]
		if c := w[i]; c >= 'A' && c <= 'Z' {
			buffer[i] = c + 'a' - 'A'
		}
	}
	top := &m.levels[len(m.levels)-1]
	switch string(buffer[:len(w)]) {
	case "and", "or", "when", "then", "else", "on", "select", "where", "having":
		top.expression()
	case "not", "is", "isnull", "notnull", "collate", "at", "in", "like", "ilike", "similar", "escape", "overlaps", "operator":
		top.chain++
	case "join", "union", "intersect", "except", "between":
		top.links++
	case "case":
		m.open('c', t.start)
	case "end":
		if top.open == 'c' {
			m.close(t.start)
		}
	case "atomic": // the body of a routine, which can create another routine
		m.bodies++
		m.exceed(m.bodies, m.limits.Depth, ExcessDepth, t.start)
	}
}

func (m *meter) open(c byte, at int) {
	m.exceed(len(m.levels), m.limits.Depth, ExcessDepth, at)
	if m.excess == nil {
		m.levels = append(m.levels, level{open: c})
	}
}

// close ends the innermost level, which becomes an operand of the enclosing one.
func (m *meter) close(at int) {
	last := len(m.levels) - 1
	depth := m.finish(&m.levels[last], at)
	m.levels = m.levels[:last]
	around := &m.levels[last-1]
	around.operand = max(around.operand, depth)
}

// finish returns the depth of a level.
func (m *meter) finish(l *level, at int) int {
	l.expression()
	depth := l.deepest + l.links + 1
	m.exceed(depth+m.bodies, m.limits.Depth, ExcessDepth, at)
	return depth
}

// isOperator follows op_chars of scan.l.
func isOperator(c byte) bool { return strings.IndexByte("~!@#^&|`?+-*/%<>=", c) >= 0 }
