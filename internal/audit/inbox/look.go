package inbox

import (
	"bytes"
	"hash/maphash"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// Look holds two hashes of a text.
type Look struct {
	Outline uint64 // equal for a user's texts that differ only in digits, quoted strings, comments and white space; 0 = not computed
	Text    uint64 // equal for a user's texts that differ only in comments and white space
}

// LookAt reads a text once. It need not be exact: it only decides what is parsed first.
func LookAt(seed maphash.Seed, q capture.Query) Look {
	var h [2]maphash.Hash // of text and outline
	text, outline := make([]byte, 0, len(q.SQL)), make([]byte, 0, len(q.SQL))
	for s := q.SQL; s != ""; {
		n, class := lexeme(s)
		word := s[:n]
		s = s[n:]
		switch class {
		case ignored:
			continue
		case constant:
			if !bytes.HasSuffix(outline, []byte("0,")) { // a list of constants counts as one
				outline = append(outline, '0')
			} else {
				outline = outline[:len(outline)-1]
			}
		default:
			outline = append(outline, word...)
		}
		text = append(text, word...)
	}
	for i, b := range [][]byte{text, outline} {
		h[i].SetSeed(seed)
		for _, owner := range []string{q.User, q.Database} {
			_, _ = h[i].WriteString(owner)
			_ = h[i].WriteByte(0)
		}
		_, _ = h[i].Write(b)
	}
	return Look{Outline: max(1, h[1].Sum64()), Text: h[0].Sum64()}
}

// class is the class of a lexeme.
type class uint8

const (
	ordinary class = iota
	ignored        // white space, a comment
	constant       // digits, also within a name, or a quoted string
)

// lexeme returns the length and class of the first lexeme of a text.
func lexeme(s string) (int, class) {
	switch c := s[0]; {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
		return 1, ignored
	case c >= '0' && c <= '9':
		n := 1
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		return n, constant
	case c == '\'':
		n := 1
		for n < len(s) && s[n] != '\'' {
			n++
		}
		return min(n+1, len(s)), constant
	case c == '-' && len(s) > 1 && s[1] == '-':
		n := 2
		for n < len(s) && s[n] != '\n' {
			n++
		}
		return n, ignored
	case c == '/' && len(s) > 1 && s[1] == '*':
		return comment(s), ignored
	}
	return 1, ordinary
}

// comment returns the length of the comment at the start of a text. Comments nest.
func comment(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch {
		case s[i] == '/' && s[i+1] == '*':
			depth++
			i++
		case s[i] == '*' && s[i+1] == '/':
			if depth--; depth == 0 {
				return i + 2
			}
			i++
		}
	}
	return len(s)
}
