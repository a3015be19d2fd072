package sqltext

import "strings"

// kind is the kind of a token.
type kind uint8

const (
	end     kind = iota // end of text
	word                // unquoted identifier or keyword
	quoted              // "identifier"
	str                 // 'string' in any of its forms, including $tag$ quoted
	number              // numeric literal without sign
	param               // $1
	symbol              // any other byte
	escaped             // U&"..." or U&'...', not decoded
)

// token is one lexeme. Its text is sql[start:end].
type token struct {
	kind       kind
	start, end int
}

// lexer returns the tokens of sql one by one, without whitespace and comments.
type lexer struct {
	sql string
	pos int
}

// next returns the next token, of kind end at the end. An unterminated token extends to the end.
func (l *lexer) next() token {
	l.skipSpace()
	start := l.pos
	if start >= len(l.sql) {
		return token{kind: end, start: len(l.sql), end: len(l.sql)}
	}
	k := l.scan(l.sql[start])
	return token{kind: k, start: start, end: l.pos}
}

// scan moves past the token that begins with c.
func (l *lexer) scan(c byte) kind {
	switch {
	case c == '\'':
		l.quote('\'', false)
		return str
	case c == '"':
		l.quote('"', false)
		return quoted
	case c == '$':
		return l.dollar()
	case isDigit(c), c == '.' && isDigit(l.at(1)):
		l.number()
		return number
	case isIdentStart(c):
		return l.word(c)
	}
	l.pos++
	return symbol
}

// word scans an identifier, or a string or quoted identifier with a prefix (E, B, X, N, U&).
func (l *lexer) word(c byte) kind {
	switch next := l.at(1); {
	case next == '\'' && strings.IndexByte("eE", c) >= 0:
		l.pos++
		l.quote('\'', true)
		return str
	case next == '\'' && strings.IndexByte("bBxXnN", c) >= 0:
		l.pos++
		l.quote('\'', false)
		return str
	case next == '&' && (c == 'u' || c == 'U') && (l.at(2) == '\'' || l.at(2) == '"'):
		l.pos += 2
		l.quote(l.sql[l.pos], false)
		return escaped
	}
	for l.pos < len(l.sql) && isIdent(l.sql[l.pos]) {
		l.pos++
	}
	return word
}

// quote scans from the opening quote q to past the closing one. A doubled quote is an escaped quote; with backslash, so
// is any byte after a backslash. As in SQL, a string continues after whitespace that contains a newline if another
// quote follows.
func (l *lexer) quote(q byte, backslash bool) {
	for l.pos++; l.pos < len(l.sql); l.pos++ {
		c := l.sql[l.pos]
		if c == '\\' && backslash {
			l.pos++
			continue
		}
		if c != q {
			continue
		}
		if l.at(1) == q {
			l.pos++
			continue
		}
		l.pos++
		if q != '\'' || !l.continued() {
			return
		}
	}
	l.pos = len(l.sql)
}

// continued moves to the quote that continues the string just closed, if any.
func (l *lexer) continued() bool {
	p, newline := l.pos, false
	for p < len(l.sql) {
		switch c := l.sql[p]; {
		case c == '\n' || c == '\r':
			newline = true
			p++
		case isSpace(c):
			p++
		case strings.HasPrefix(l.sql[p:], "--"):
			p += lineLength(l.sql[p:])
		case c == '\'' && newline:
			l.pos = p
			return true
		default:
			return false
		}
	}
	return false
}

// dollar scans $1, $tag$ ... $tag$, or a lone dollar sign.
func (l *lexer) dollar() kind {
	p := l.pos + 1
	if p < len(l.sql) && isDigit(l.sql[p]) {
		for p < len(l.sql) && isDigit(l.sql[p]) {
			p++
		}
		l.pos = p
		return param
	}
	if p < len(l.sql) && isIdentStart(l.sql[p]) {
		for p < len(l.sql) && isIdent(l.sql[p]) && l.sql[p] != '$' {
			p++
		}
	}
	if p >= len(l.sql) || l.sql[p] != '$' {
		l.pos++
		return symbol
	}
	tag := l.sql[l.pos : p+1]
	body := l.sql[p+1:]
	if i := strings.Index(body, tag); i >= 0 {
		l.pos = p + 1 + i + len(tag)
	} else {
		l.pos = len(l.sql)
	}
	return str
}

// number scans digits, points, underscores and letters, and the sign of an exponent: enough to find the end of a
// numeric literal in text that the server accepts.
func (l *lexer) number() {
	hex := l.sql[l.pos] == '0' && (l.at(1)|0x20) == 'x'
	for l.pos++; l.pos < len(l.sql); l.pos++ {
		c, before := l.sql[l.pos], l.sql[l.pos-1]
		exponentSign := (c == '+' || c == '-') && (before|0x20) == 'e' && !hex && isDigit(l.at(1))
		if !isDigit(c) && !isLetter(c) && c != '.' && c != '_' && !exponentSign {
			return
		}
	}
}

// skipSpace moves past whitespace and comments; block comments nest.
func (l *lexer) skipSpace() {
	for l.pos < len(l.sql) {
		switch c := l.sql[l.pos]; {
		case isSpace(c):
			l.pos++
		case c == '-' && l.at(1) == '-':
			l.pos += lineLength(l.sql[l.pos:])
		case c == '/' && l.at(1) == '*':
			l.blockComment()
		default:
			return
		}
	}
}

func (l *lexer) blockComment() {
	depth := 0
	for l.pos < len(l.sql) {
		switch c := l.sql[l.pos]; {
		case c == '/' && l.at(1) == '*':
			depth++
			l.pos += 2
		case c == '*' && l.at(1) == '/':
			depth--
			l.pos += 2
			if depth == 0 {
				return
			}
		default:
			l.pos++
		}
	}
}

// at returns the byte i positions after the current one, 0 past the end.
func (l *lexer) at(i int) byte {
	if l.pos+i >= len(l.sql) {
		return 0
	}
	return l.sql[l.pos+i]
}

// lineLength returns the number of bytes of s before its first newline.
func lineLength(s string) int {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		return i
	}
	return len(s)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isIdentStart(c byte) bool { return isLetter(c) || c == '_' || c >= 0x80 }

func isIdent(c byte) bool { return isIdentStart(c) || isDigit(c) || c == '$' }

// isSpace follows scan.l. The vertical tab is whitespace since PostgreSQL 16; before, it was an error.
func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}
