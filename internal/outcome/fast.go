package outcome

import (
	"bytes"
	"unicode/utf8"
)

// fastObject parses the plain form of a result set: the members columns and rows, scalars, and strings without escapes.
// ok is false for everything else, including faults, which encoding/json then parses.
func (r *Parser) fastObject(line []byte) (o Outcome, ok bool) {
	p := fastParser{b: line, Parser: r}
	var names []string
	var rows [][]Value
	var fraction []bool // by column: a number with a fraction or an exponent
	haveNames, haveRows := false, false
	p.expect('{')
	for more := true; more && !p.failed; more = p.accept(',') {
		switch p.text(); {
		case string(p.token) == "columns" && !haveNames:
			haveNames = true
			p.expect(':')
			names = p.names()
		case string(p.token) == "rows" && !haveRows:
			haveRows = true
			p.expect(':')
			rows, fraction = p.rows()
		default:
			return o, false
		}
	}
	p.expect('}')
	if p.blanks(); p.failed || p.at != len(p.b) {
		return o, false
	}
	width := len(names)
	if names == nil {
		width = len(fraction)
	}
	if len(rows) > 0 && len(fraction) != width {
		return o, false
	}
	if names == nil || !r.known(names, fraction) {
		r.columns = newColumns(names, width)
		for i := range fraction {
			r.columns[i].Discrete = !fraction[i]
		}
	}
	return Outcome{Columns: r.columns, Rows: rows}, true
}

// known reports whether the last result had the same columns.
func (r *Parser) known(names []string, fraction []bool) bool {
	if r.columns == nil || len(names) != len(r.columns) {
		return false
	}
	for i, c := range r.columns {
		if c.Name != names[i] || c.Discrete == (i < len(fraction) && fraction[i]) {
			return false
		}
	}
	return true
}

// fastParser parses JSON. A failure is permanent.
type fastParser struct {
	*Parser
	b      []byte
	at     int
	token  []byte // of the last string or scalar
	failed bool
}

// blank are the characters between two tokens, a bit for each.
const blank = 1<<' ' | 1<<'\t' | 1<<'\r' | 1<<'\n'

func (p *fastParser) blanks() {
	for p.at < len(p.b) && p.b[p.at] <= ' ' && blank>>p.b[p.at]&1 == 1 {
		p.at++
	}
}

// accept consumes one character, if it is the next. It is small enough to be inlined.
func (p *fastParser) accept(c byte) bool {
	p.blanks()
	ok := p.at < len(p.b) && p.b[p.at] == c
	if ok {
		p.at++
	}
	return ok
}

func (p *fastParser) expect(c byte) {
	if !p.accept(c) {
		p.failed = true
	}
}

// text parses a string without escapes into token.
func (p *fastParser) text() {
	if p.token = nil; !p.accept('"') {
		p.failed = true
		return
	}
	end := bytes.IndexByte(p.b[p.at:], '"')
	if end < 0 {
		p.failed = true
		return
	}
	p.token = p.b[p.at : p.at+end]
	p.at += end + 1
	ascii := true
	for _, c := range p.token {
		if c == '\\' || c < ' ' {
			p.failed = true
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if !ascii && !utf8.Valid(p.token) {
		p.failed = true
	}
}

func (p *fastParser) names() []string {
	names := []string{}
	p.expect('[')
	if p.accept(']') {
		return names
	}
	for more := true; more && !p.failed; more = p.accept(',') {
		p.text()
		if i := len(names); i < len(p.columns) && string(p.token) == p.columns[i].Name {
			names = append(names, p.columns[i].Name)
			continue
		}
		names = append(names, string(p.token))
	}
	p.expect(']')
	return names
}

// rows parses rows of equal width. fraction has an element for each column.
func (p *fastParser) rows() (rows [][]Value, fraction []bool) {
	p.expect('[')
	if p.accept(']') {
		return nil, nil
	}
	last := p.values
	p.values = nil // until all of them are valid
	all := last[:0]
	rows = p.reused[:0]
	if !p.Reuse || cap(all) == 0 || cap(rows) == 0 {
		all, rows = make([]Value, 0, max(1, len(last))), make([][]Value, 0, max(1, p.rowCount))
	}
	for more := true; more && !p.failed; more = p.accept(',') {
		begin := len(all)
		p.expect('[')
		for more := !p.accept(']'); more && !p.failed; more = p.accept(',') {
			var before Value // at this position in the last result
			if len(all) < len(last) {
				before = last[len(all)]
			}
			v, broken := p.value(&before)
			column := len(all) - begin
			if all = append(all, v); len(rows) == 0 {
				fraction = append(fraction, false)
			} else if column >= len(fraction) {
				p.failed = true
				return nil, nil
			}
			fraction[column] = fraction[column] || broken
		}
		if len(all) > begin {
			p.expect(']')
		}
		if len(all)-begin != len(fraction) {
			p.failed = true
		}
		rows = append(rows, all[begin:len(all):len(all)])
	}
	p.expect(']')
	if p.failed {
		return nil, nil
	}
	p.values, p.rowCount = all, len(rows)
	if p.Reuse {
		p.reused = rows
	}
	return rows, fraction
}

// value parses a scalar, and reports whether it is a number with a fraction or an exponent. It returns the text of
// before if the text is equal.
func (p *fastParser) value(before *Value) (v Value, fraction bool) {
	p.blanks()
	known := before.Text
	if p.at < len(p.b) && p.b[p.at] == '"' {
		if before.Kind != Text {
			known = ""
		}
		// A text that was valid in the last result is valid now.
		if end := p.at + 1 + len(known); known != "" && end < len(p.b) && p.b[end] == '"' && string(p.b[p.at+1:end]) == known {
			p.at = end + 1
			return Value{Kind: Text, Text: known}, false
		}
		if p.text(); string(p.token) == known {
			return Value{Kind: Text, Text: known}, false
		}
		return nonFinite(string(p.token)), false
	}
	if x, n, fraction := decimal(p.b[p.at:]); n > 0 && (p.at+n == len(p.b) || isEnd(p.b[p.at+n])) {
		text := known
		if string(p.b[p.at:p.at+n]) != known {
			text = string(p.b[p.at : p.at+n])
		}
		p.at += n
		return Value{Kind: Number, Num: x, Text: text}, fraction
	}
	start := p.at
	for p.at < len(p.b) && !isEnd(p.b[p.at]) {
		p.at++
	}
	switch raw := p.b[start:p.at]; string(raw) {
	case "null":
		return Value{Kind: Null}, false
	case "true":
		return Value{Kind: Bool, Num: 1}, false
	case "false":
		return Value{Kind: Bool}, false
	default:
		f, ok := ParseNumber(raw)
		if !ok || !isJSONNumber(raw) {
			p.failed = true
		}
		return Value{Kind: Number, Num: f, Text: string(raw)}, bytes.ContainsAny(raw, ".eE")
	}
}

// isEnd reports whether a byte ends a scalar other than a string.
func isEnd(c byte) bool {
	return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\t' || c == '\r' || c == '\n'
}

// isJSONNumber reports whether b is a number in JSON's grammar (RFC 8259, section 6).
func isJSONNumber(b []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(b) && '0' <= b[n] && b[n] <= '9' {
			n++
		}
		b = b[n:]
		return n > 0
	}
	b = bytes.TrimPrefix(b, []byte("-"))
	if len(b) > 0 && b[0] == '0' {
		b = b[1:]
	} else if !digits() {
		return false
	}
	if len(b) > 0 && b[0] == '.' {
		if b = b[1:]; !digits() {
			return false
		}
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		if b = b[1:]; len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(b) == 0
}
