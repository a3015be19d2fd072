package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// Parsing takes a hundred times as long as reading a text once. If many texts that look alike were turned away in a row,
// only a sample of them is parsed, and those that come again.
const (
	floodAfter  = 32      // texts turned away in a row
	floodSample = 16      // then one in floodSample is parsed
	glimpsed    = 1 << 16 // minimal number of texts that are remembered, to recognise repeated ones
)

// look holds two hashes of a text.
type look struct {
	outline uint64 // equal for a user's texts that differ only in digits, quoted strings, comments and white space; 0 = not computed
	text    uint64 // equal for a user's texts that differ only in comments and white space
}

// lookAt reads a text once. It need not be exact: it only decides what is parsed first.
func lookAt(seed maphash.Seed, q capture.Query) look {
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
	return look{outline: max(1, h[1].Sum64()), text: h[0].Sum64()}
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

// passOver reports whether a text is turned away without being parsed, and then counts it. id identifies the statement with its
// comments, parameters and settings. before reports that the same statement was turned away so, and is to be parsed now.
func (a *Auditor) passOver(l look, id [sha256.Size]byte) (over, before bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	turned, _ := a.outlines.get(l.outline)
	if turned < floodAfter {
		return false, false
	}
	statement := max(1, binary.BigEndian.Uint64(id[:]))
	if glimpse, again := a.glimpses.get(l.text); again {
		if before = glimpse == statement; before {
			a.glimpses.put(l.text, 0)
		}
		return false, before
	}
	a.outlines.put(l.outline, turned+1)
	if turned%floodSample == 0 {
		a.glimpses.put(l.text, 0)
		return false, false
	}
	a.glimpses.put(l.text, statement)
	a.count(fmt.Sprintf("%016x", l.text), false)
	return true, false
}

// outcomeOf records whether a text that was parsed was turned away. The caller holds Auditor.mu.
func (a *Auditor) outcomeOf(l look, turnedAway bool) {
	if l.outline == 0 {
		return
	}
	turned, _ := a.outlines.get(l.outline)
	switch {
	case !turnedAway:
		a.outlines.put(l.outline, 0)
	case turned < floodAfter:
		a.outlines.put(l.outline, turned+1)
	}
}
