package sqltext

import "strings"

// Split splits the text of a simple query into its statements, in order: each with its comments, without the semicolon and
// without surrounding whitespace. Pieces of only whitespace and comments are not statements, as for the server. The
// statements share sql's memory.
//
// As in psql, a semicolon inside parentheses (CREATE RULE) or between the BEGIN ATOMIC and END of a routine's body is not a
// separator.
func Split(sql string) []string { return AppendSplit(nil, sql) }

// AppendSplit appends the result of Split to dst.
func AppendSplit(dst []string, sql string) []string {
	s := splitter{lexer: lexer{sql: sql}, statements: dst}
	for {
		t := s.next()
		if t.kind == end {
			s.cut(len(sql))
			return s.statements
		}
		s.token(t)
	}
}

// heading is the sequence of leading words seen in a statement.
type heading uint8

const (
	nothing heading = iota
	create
	createOr
	createOrReplace
	notRoutine // or known to be one: see splitter.routine
)

// splitter is the state of Split within one statement.
type splitter struct {
	lexer
	statements []string
	start      int // where the statement began
	tokens     int // tokens of the statement so far
	heading    heading
	routine    bool // the statement begins with CREATE [OR REPLACE] FUNCTION or PROCEDURE
	parens     int
	bodies     int // open BEGIN and CASE in a routine's body
}

func (s *splitter) token(t token) {
	if t.kind == symbol {
		switch s.sql[t.start] {
		case ';':
			if s.parens == 0 && s.bodies == 0 {
				s.cut(t.start)
				s.start = t.end
				return
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
}

func (s *splitter) keyword(w string) {
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
func (s *splitter) head(w string) {
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

// cut ends the statement at position e.
func (s *splitter) cut(e int) {
	if s.tokens > 0 {
		s.statements = append(s.statements, strings.Trim(s.sql[s.start:e], " \t\n\r\f\v"))
	}
	s.tokens, s.heading, s.routine, s.parens, s.bodies = 0, nothing, false, 0, 0
}
