package capture

import "strings"

// Mentions returns a function that reports whether the text of a statement may name one of the relations, given by
// their bare names as the server knows them. It never says no to a text that names one: names are looked for as
// parts of the text, letters A to Z in either case, and a text with an escaped identifier (U&"...") always may.
// Calling it allocates nothing. Without names it always says yes.
func Mentions(names []string) func(sql string) bool {
	m := mentions{names: []string{`u&"`}}
	for _, name := range names {
		if len(name) > sureBytes {
			name = strings.ToValidUTF8(name[:sureBytes], "")
		}
		name = lowerASCII(strings.ReplaceAll(name, `"`, `""`)) // as it has to be quoted
		if name == "" || name == "*" {
			return func(string) bool { return true }
		}
		m.names = append(m.names, name)
	}
	if len(names) == 0 {
		return func(string) bool { return true }
	}
	for _, name := range m.names {
		m.first[name[0]] = true
		m.first[upper(name[0])] = true
	}
	return m.in
}

// sureBytes is how much of a name is looked for: the server cuts names at 63 bytes, between characters.
const sureBytes = 60

// mentions looks for names, in lower case.
type mentions struct {
	names []string
	first [256]bool // the bytes that a name may begin with
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

// startsWith reports whether s begins with prefix, which is in lower case, in either case.
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

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = lower(c)
	}
	return string(b)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}
