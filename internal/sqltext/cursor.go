package sqltext

import "strings"

// Rows says which rows of a cursor a FETCH or MOVE reads. The server computes a row again when it is read again, unless
// the plan keeps it.
type Rows uint8

// The kinds of rows.
const (
	NextRows Rows = iota // rows that were not read before, unless the cursor went back
	SameRow              // one row that may have been read before: FIRST, PRIOR, ABSOLUTE, RELATIVE 0
	RowsBack             // several of these, backward: the next rows are the same ones
	NoRows               // none, and goes back to the start: ABSOLUTE 0
)

// declare reads the rest of DECLARE.
func (p *parser) declare() Effect {
	e := p.named(DeclareCursor)
	if e.Action != DeclareCursor {
		return e
	}
	e.Statement = p.sql
	for ; p.tok.kind != end && !p.is("for"); p.advance() {
		switch {
		case p.is("no"):
			e.NoScroll = true
		case p.is("without"):
			p.advance()
		case p.is("hold"):
			e.Hold = true
		}
	}
	return e
}

// fetch reads the rest of FETCH or MOVE.
func (p *parser) fetch() Effect {
	rows := NextRows
	switch {
	case p.directed("next"), p.directed("all"):
	case p.directed("prior"), p.directed("first"), p.directed("last"):
		rows = SameRow
	case p.directed("absolute"):
		if rows = SameRow; p.count().zero {
			rows = NoRows
		}
	case p.directed("relative"):
		if n := p.count(); n.negative || n.zero {
			rows = SameRow
		}
	case p.directed("forward"):
		rows = p.counted().forward()
	case p.directed("backward"):
		n := p.counted()
		n.negative = !n.negative
		rows = n.forward()
	case p.tok.kind == number, p.tok.kind == symbol:
		rows = p.count().forward()
	}
	p.skipUnlessLast("from")
	p.skipUnlessLast("in")
	e := p.named(Fetch)
	e.Rows = rows
	return e
}

// directed consumes a direction of FETCH. At the end of the statement it is the name of the cursor.
func (p *parser) directed(w string) bool {
	if !p.is(w) {
		return false
	}
	at := *p
	p.advance()
	if p.tok.kind == end {
		*p = at
		return false
	}
	return true
}

// rowCount is the number of rows of a FETCH.
type rowCount struct{ zero, one, negative bool }

// forward returns which rows a FETCH of so many rows forward reads.
func (n rowCount) forward() Rows {
	switch {
	case n.zero, n.negative && n.one:
		return SameRow
	case n.negative:
		return RowsBack
	}
	return NextRows
}

// counted reads an optional number of rows, or ALL.
func (p *parser) counted() rowCount {
	switch {
	case p.accept("all"):
		return rowCount{}
	case p.tok.kind == number, p.isSymbol('-'), p.isSymbol('+'):
		return p.count()
	}
	return rowCount{one: true}
}

// count reads a number of rows. One in a form that is not known counts as 0, which makes the row one that was read
// before.
func (p *parser) count() rowCount {
	n := rowCount{negative: p.acceptSymbol('-')}
	if !n.negative {
		p.acceptSymbol('+')
	}
	digits := strings.Trim(p.text(), "0123456789")
	value := strings.TrimLeft(p.text(), "0")
	n.zero, n.one = p.tok.kind != number || digits != "" || value == "", value == "1"
	if p.tok.kind == number {
		p.advance()
	}
	return n
}

// IsPlanned reports whether the server plans a statement before it is executed, and evaluates constant expressions of
// it, as its first word shows.
func IsPlanned(sql string) bool {
	p := newParser(sql, 0)
	p.advance()
	if p.isSymbol('(') {
		return true
	}
	for _, w := range [...]string{"select", "with", "values", "table", "insert", "update", "delete", "merge"} {
		if p.is(w) {
			return true
		}
	}
	return false
}
