package sqltext

import (
	"crypto/sha256"
	"strings"
)

// Shape returns a hash that is equal for texts that differ only in constants, comments, whitespace, the case of words,
// and the number of repetitions of one or two tokens: 1+1 and 1+2+3, or lists of different lengths. Such texts are
// likely to have the same effect on a parser.
func Shape(sql string) [sha256.Size]byte {
	l := lexer{sql: sql}
	var shape []string
	for t := l.next(); t.kind != end; t = l.next() {
		text := sql[t.start:t.end]
		switch t.kind {
		case word:
			text = Lower(text)
		case str, number, param:
			text = "?"
		case escaped:
			if text[len(text)-1] == '\'' {
				text = "?"
			}
		}
		shape = append(shape, text)
		n := len(shape)
		switch {
		case n >= 2 && shape[n-1] == shape[n-2]:
			shape = shape[:n-1]
		case n >= 4 && shape[n-1] == shape[n-3] && shape[n-2] == shape[n-4]:
			shape = shape[:n-2]
		}
	}
	return sha256.Sum256([]byte(strings.Join(shape, " ")))
}
