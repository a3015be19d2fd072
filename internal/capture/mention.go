package capture

import "strings"

// Mentions returns a function that reports whether a statement's text may name one of the relations, given by their bare
// names as the server stores them. It has no false negatives: it searches for the names as substrings, with letters A to Z
// in either case, and always reports true for a text with an escaped identifier (U&"..."). It does not allocate. Without
// names it always reports true.
func Mentions(names []string) func(sql string) bool {
	m := mentions{names: []string{`u&"`}}
	for _, name := range names {
		if len(name) > sureBytes {
			name = strings.ToValidUTF8(name[:sureBytes], "")
		}
		name = strings.Map(lower, strings.ReplaceAll(name, `"`, `""`)) // as written inside quotes
		if name == "" || name == "*" {
			return func(string) bool { return true }
		}
		m.names = append(m.names, name)
	}
	if len(names) == 0 {
		return func(string) bool { return true }
	}
	for _, name := range m.names {
		for c := range m.first {
			m.first[c] = m.first[c] || lower(byte(c)) == name[0]
		}
	}
	return m.in
}

// sureBytes is the length of the prefix that is searched for: the server truncates names to 63 bytes, at a character
// boundary.
const sureBytes = 60

// mentions searches for names, stored in lower case.
type mentions struct {
	names []string
	first [256]bool // the first bytes of the names, in either case
}

func (m *mentions) in(sql string) bool {
	for i := range len(sql) {
		if !m.first[sql[i]] {
			continue
		}
		for _, name := range m.names {
			if startsWith(sql[i:], name) {
				return true
			}
		}
	}
	return false
}

// startsWith reports whether s begins with prefix, ignoring case. Prefix is in lower case.
func startsWith(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

// lower folds A to Z.
func lower[T byte | rune](c T) T {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
