package ident

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// MaxBytes is NAMEDATALEN-1: the server truncates longer identifiers.
const MaxBytes = 63

// ParseList parses the value of search_path like the server (SplitIdentifierString in varlena.c): identifiers separated
// by commas, folded to lower case unless quoted, truncated at 63 bytes. ok is false if the server would reject it, or
// if it is the word DEFAULT without quotes, whose meaning only the server has.
func ParseList(value string) (path []string, ok bool) {
	rest := strings.TrimLeft(value, Space)
	if rest == "" {
		return []string{}, true
	}
	for {
		var name string
		if name, rest, ok = nextIdentifier(rest, ","); !ok {
			return nil, false
		}
		path = append(path, name)
		rest = strings.TrimLeft(rest, Space)
		if rest == "" {
			return path, true
		}
		if rest[0] != ',' {
			return nil, false
		}
		rest = strings.TrimLeft(rest[1:], Space)
	}
}

// ParseName parses a qualified name as the server does where a text names a relation (stringToQualifiedNameList):
// identifiers separated by dots, otherwise like ParseList.
func ParseName(text string) (parts []string, ok bool) {
	for rest := text; ; rest = rest[1:] {
		name, after, ok := nextIdentifier(strings.TrimLeft(rest, Space), ".")
		if !ok || name == "" {
			return nil, false
		}
		parts = append(parts, name)
		if rest = strings.TrimLeft(after, Space); rest == "" {
			return parts, true
		}
		if rest[0] != '.' {
			return nil, false
		}
	}
}

// Space holds the characters of PostgreSQL's scanner_isspace.
const Space = " \t\n\r\f\v"

// nextIdentifier parses one identifier, quoted or not, at the start of s; an unquoted one ends before a space or the
// separator.
func nextIdentifier(s, separator string) (name, rest string, ok bool) {
	if strings.HasPrefix(s, `"`) {
		return quotedIdentifier(s[1:])
	}
	end := strings.IndexAny(s, separator+Space)
	if end < 0 {
		end = len(s)
	}
	name = Fold(s[:end])
	if name == "" || name == "default" || strings.Contains(name, `"`) {
		return "", "", false
	}
	return cutName(name), s[end:], true
}

// quotedIdentifier parses up to the closing quote; a doubled quote is one quote.
func quotedIdentifier(s string) (name, rest string, ok bool) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			return "", "", false
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		if !strings.HasPrefix(s, `"`) {
			return cutName(b.String()), s, true
		}
		b.WriteByte('"')
		s = s[1:]
	}
}

// Fold lowers A to Z and leaves every other byte unchanged, like the server for UTF-8.
func Fold(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// cutName truncates a name at 63 bytes, not within a character.
func cutName(s string) string {
	if len(s) <= MaxBytes {
		return s
	}
	end := MaxBytes
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end]
}

// Compare orders names by schema, then by name.
func Compare(a, b Table) int {
	return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
}

// Sorted returns the names of a set in order.
func Sorted(set map[Table]bool) []Table { return slices.SortedFunc(maps.Keys(set), Compare) }

// ContainsWord reports whether a text contains a name that is not part of a longer one.
func ContainsWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(word)
		if (start == 0 || !IsNameByte(text[start-1])) && (end == len(text) || !IsNameByte(text[end])) {
			return true
		}
		from = start + 1
	}
}

// IsNameByte reports whether an unquoted name may contain a byte.
func IsNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// IsOperator reports whether a name is that of an operator.
func IsOperator(name string) bool {
	return name != "" && strings.Trim(name, "+-*/<>=~!@#%^&|`?") == ""
}
