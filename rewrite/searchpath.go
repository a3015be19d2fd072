package rewrite

import (
	"strings"
)

// userSchema is the entry of a search_path that stands for the schema called like the current user.
const userSchema = "$user"

// parseSearchPath reads the value of search_path as the server does (SplitIdentifierString in varlena.c): identifiers
// between commas, folded to lower case unless quoted, cut at 63 bytes. ok is false when the server would not take it,
// or when it is the bare word DEFAULT, whose meaning only the server knows.
func parseSearchPath(value string) (path []string, ok bool) {
	rest := strings.TrimLeft(value, pathSpace)
	if rest == "" {
		return []string{}, true
	}
	for {
		var name string
		if name, rest, ok = nextIdentifier(rest); !ok {
			return nil, false
		}
		path = append(path, name)
		rest = strings.TrimLeft(rest, pathSpace)
		if rest == "" {
			return path, true
		}
		if rest[0] != ',' {
			return nil, false
		}
		rest = strings.TrimLeft(rest[1:], pathSpace)
	}
}

// pathSpace is scanner_isspace of PostgreSQL.
const pathSpace = " \t\n\r\f\v"

// nextIdentifier takes one identifier, quoted or not, from the front of s.
func nextIdentifier(s string) (name, rest string, ok bool) {
	if strings.HasPrefix(s, `"`) {
		return quotedIdentifier(s[1:])
	}
	end := strings.IndexAny(s, ","+pathSpace)
	if end < 0 {
		end = len(s)
	}
	name = foldASCII(s[:end])
	if name == "" || name == "default" || strings.Contains(name, `"`) {
		return "", "", false
	}
	return cutName(name), s[end:], true
}

// quotedIdentifier reads up to the closing quote; a doubled quote stands for one.
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

// foldASCII lowers A to Z and leaves every other byte, as the server does for UTF-8.
func foldASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// cutName cuts a name at 63 bytes, not within a character.
func cutName(s string) string {
	if len(s) <= maxNameBytes {
		return s
	}
	end := maxNameBytes
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end]
}
