package sqltext

import "strings"

// Split splits the text of a simple query into its statements, in order: each with its comments, without the semicolon
// and without surrounding whitespace. Pieces of only whitespace and comments are not statements, as for the server. The
// statements share sql's memory.
//
// As in psql, a semicolon inside parentheses (CREATE RULE) or between the BEGIN ATOMIC and END of a routine's body is
// not a separator.
func Split(sql string) []string {
	var statements []string
	s := NewSplitter(sql)
	for statement, ok := s.Next(); ok; statement, ok = s.Next() {
		statements = append(statements, statement)
	}
	return statements
}

// heading is the sequence of leading words seen in a statement.
type heading uint8

const (
	nothing heading = iota
	create
	createOr
	createOrReplace
	notRoutine // or known to be one: see Splitter.routine
)

// Splitter returns the statements of Split one by one, without allocating.
type Splitter struct {
	lexer
	start   int // where the statement began
	tokens  int // tokens of the statement so far
	heading heading
	routine bool // the statement begins with CREATE [OR REPLACE] FUNCTION or PROCEDURE
	parens  int
	bodies  int // open BEGIN and CASE in a routine's body
}

// NewSplitter returns a Splitter for the text of a simple query.
func NewSplitter(sql string) Splitter { return Splitter{lexer: lexer{sql: sql}} }

// Next returns the next statement; false at the end.
func (s *Splitter) Next() (statement string, ok bool) {
	for {
		t := s.next()
		if t.kind != end && !s.separates(t) {
			continue
		}
		statement, ok = s.sql[s.start:t.start], s.tokens > 0
		*s = Splitter{lexer: s.lexer, start: t.end}
		if ok || t.kind == end {
			return strings.Trim(statement, " \t\n\r\f\v"), ok
		}
	}
}

// separates follows a token and reports whether it is the semicolon that ends the statement.
func (s *Splitter) separates(t token) bool {
	if t.kind == symbol {
		switch s.sql[t.start] {
		case ';':
			if s.parens == 0 && s.bodies == 0 {
				return true
			}
		case '(':
			s.parens++
		case ')':
			s.parens = max(s.parens-1, 0)
		}
	}
	s.tokens++
	if t.kind == word {
		s.keyword(s.sql[t.start:t.end])
	}
	return false
}

func (s *Splitter) keyword(w string) {
	if s.heading != notRoutine && !s.routine {
		s.head(w)
		return
	}
	if !s.routine || s.parens > 0 {
		return
	}
	switch {
	case strings.EqualFold(w, "begin"), s.bodies > 0 && strings.EqualFold(w, "case"):
		s.bodies++
	case strings.EqualFold(w, "end"):
		s.bodies = max(s.bodies-1, 0)
	}
}

// head follows the first words of a statement up to CREATE [OR REPLACE] FUNCTION or PROCEDURE.
func (s *Splitter) head(w string) {
	switch {
	case s.heading == nothing && strings.EqualFold(w, "create"):
		s.heading = create
	case s.heading == create && strings.EqualFold(w, "or"):
		s.heading = createOr
	case s.heading == createOr && strings.EqualFold(w, "replace"):
		s.heading = createOrReplace
	case s.heading == create || s.heading == createOrReplace:
		s.routine = strings.EqualFold(w, "function") || strings.EqualFold(w, "procedure")
		s.heading = notRoutine
	default:
		s.heading = notRoutine
	}
}
