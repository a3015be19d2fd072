package capture

import (
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Mentions returns a function that reports whether a statement's text may name one of the relations or functions, given
// by their bare names as the server stores them. It compares whole identifiers as the server reads them: letters A to Z
// in either case, truncated at 63 bytes; a letter outside ASCII equals any other, because servers with a single-byte
// encoding fold some. It has no false negatives in names that are written in the text: identifiers in comments, strings
// and dollar quotes count, and a text with an escaped identifier (U&"...") always does. It does not allocate. Without
// names it always reports true.
func Mentions(names []string) func(sql string) bool {
	m := mentions{words: map[string]bool{}, phrases: []string{`u&"`}}
	for _, name := range names {
		if name == "" || name == "*" {
			return func(string) bool { return true }
		}
		name = ident.Fold(cutWord(name))
		if isWord(name) {
			m.words[name] = true
			m.lengths[name[0]] |= 1 << len(name)
		} else {
			m.phrases = append(m.phrases, strings.ReplaceAll(name, `"`, `""`)) // as written inside quotes
		}
	}
	if len(names) == 0 {
		return func(string) bool { return true }
	}
	for _, phrase := range m.phrases {
		for c := range m.first {
			m.first[c] = m.first[c] || equalByte(byte(c), phrase[0])
		}
	}
	m.first[foldedI[0]] = true
	return m.in
}

// sureBytes is the length to which names and identifiers are cut before they are compared: the server truncates names
// to 63 bytes of its own encoding, at a character boundary.
const sureBytes = 60

func cutWord(name string) string {
	if len(name) > sureBytes {
		return strings.ToValidUTF8(name[:sureBytes], "")
	}
	return name
}

// foldedI is I with a dot above in UTF-8, which servers with a Turkish single-byte locale fold to i.
const foldedI = "\u0130"

// mentions searches for names, stored in lower case and cut.
type mentions struct {
	words   map[string]bool // names of ASCII letters, digits and underscores
	lengths [256]uint64     // of the words, as bits, by first byte
	phrases []string        // other names, which are compared as substrings
	first   [256]bool       // the first bytes of the phrases, in either case
}

// wordByte holds the bytes of which words consist. A dollar sign is none, although names may contain it: it may end a
// dollar quote, and a name that contains it is a phrase.
var wordByte = func() (is [256]bool) {
	for c := range is {
		is[c] = ident.IsNameByte(byte(c)) && c != '$'
	}
	return is
}()

// isWord reports whether a name consists of bytes of words, all of them ASCII.
func isWord(name string) bool {
	for i := range len(name) {
		if !wordByte[name[i]] || name[i] >= 0x80 {
			return false
		}
	}
	return true
}

func (m *mentions) in(sql string) bool {
	for i := 0; i < len(sql); {
		if m.first[sql[i]] && m.phraseAt(sql[i:]) {
			return true
		}
		if !wordByte[sql[i]] {
			i++
			continue
		}
		end := i + 1
		for end < len(sql) && wordByte[sql[end]] {
			if m.first[sql[end]] && m.phraseAt(sql[end:]) {
				return true
			}
			end++
		}
		// In a string, the first letter of the word may belong to an escape: E'\tusers'.
		if m.word(sql[i:end]) || i > 0 && sql[i-1] == '\\' && m.word(sql[i+1:end]) {
			return true
		}
		i = end
	}
	return false
}

// word reports whether an identifier is one of the words.
func (m *mentions) word(s string) bool {
	if len(s) > sureBytes {
		s = s[:sureBytes]
	}
	if s == "" || m.lengths[lower(s[0])]&(1<<len(s)) == 0 {
		return false
	}
	var folded [sureBytes]byte
	for i := range len(s) {
		folded[i] = lower(s[i])
	}
	return m.words[string(folded[:len(s)])]
}

// phraseAt reports whether a text begins with a phrase.
func (m *mentions) phraseAt(s string) bool {
	if strings.HasPrefix(s, foldedI) {
		return true
	}
	for _, phrase := range m.phrases {
		if startsWith(s, phrase) {
			return true
		}
	}
	return false
}

// startsWith reports whether s begins with prefix, which is in lower case; see equalByte.
func startsWith(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if !equalByte(s[i], prefix[i]) {
			return false
		}
	}
	return true
}

// equalByte reports whether a byte of a text may be folded to a byte of a name. Any two bytes outside ASCII are equal:
// letters of the single-byte encodings have two bytes each in UTF-8.
func equalByte(c, name byte) bool { return lower(c) == name || c >= 0x80 && name >= 0x80 }

// lower folds A to Z.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
